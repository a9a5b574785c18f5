"""Codes of languages, as file names, options, headers and signatures hold them."""

from __future__ import annotations

import re

__all__ = ["is_code", "is_short_code", "same_code"]

_CODE = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")
_SHORT = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,8})*")


def is_code(text: str) -> bool:
    """Whether a text has the form of a language's code: fr, pt-BR, zh_Hans (the form alone: txt has it, too)."""
    return _CODE.fullmatch(text) is not None


def is_short_code(text: str) -> bool:
    """Whether it is a code of two or three small letters, with parts behind them or without: fr, pt-BR. For where a
    word must not pass for a code, as in the header of a table."""
    return _SHORT.fullmatch(text) is not None


# ISO 639-2 and 639-3 codes of languages that have one of two letters (639-1), bibliographic ones included.
_THREE = """
afr=af alb=sq amh=am ara=ar arm=hy asm=as aze=az baq=eu bel=be ben=bn bos=bs bre=br bul=bg bur=my cat=ca ces=cs chi=zh
cmn=zh cos=co cym=cy cze=cs dan=da deu=de div=dv dut=nl ell=el eng=en epo=eo est=et eus=eu fao=fo fas=fa fin=fi fra=fr
fre=fr fry=fy geo=ka ger=de gla=gd gle=ga glg=gl gre=el guj=gu hat=ht hau=ha heb=he hin=hi hrv=hr hun=hu hye=hy ibo=ig
ice=is ind=id isl=is ita=it jav=jv jpn=ja kan=kn kat=ka kaz=kk khm=km kin=rw kir=ky kor=ko kur=ku lao=lo lat=la lav=lv
lit=lt ltz=lb mac=mk mal=ml mao=mi mar=mr may=ms mkd=mk mlg=mg mlt=mt mon=mn mri=mi msa=ms mya=my nep=ne nld=nl nno=nn
nob=nb nor=no oci=oc ori=or pan=pa per=fa pes=fa pol=pl por=pt pus=ps que=qu roh=rm ron=ro rum=ro run=rn rus=ru san=sa
sin=si slk=sk slo=sk slv=sl sna=sn snd=sd som=so sot=st spa=es sqi=sq srp=sr sun=su swa=sw swe=sv tam=ta tat=tt tel=te
tgk=tg tgl=tl tha=th tib=bo tir=ti tur=tr uig=ug ukr=uk urd=ur uzb=uz vie=vi wel=cy wol=wo xho=xh yid=yi yor=yo zho=zh
zul=zu
"""
_TWO = dict(entry.split("=") for entry in _THREE.split())


def same_code(code: str) -> str:
    """What the codes of a language have in common, without region and script: fr for fr, FR, fr-FR, fr_CA, fra and fre.

    The code of two letters where there is one, else the first part in small letters.
    """
    first = code.replace("_", "-").partition("-")[0].lower()
    return _TWO.get(first, first)
