"""The look of the report."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root{color-scheme:light dark;--bg:#fbfbf9;--card:#fff;--ink:#1b2330;--soft:#5b6472;--line:#dfe2e6;--accent:#1f6fb2;
--pale:#b3c3d3;--cut:#b9430b;--mark:#fff3e2}
@media (prefers-color-scheme:dark){:root{--bg:#14171c;--card:#1b1f26;--ink:#e5e8ec;--soft:#a0a9b5;--line:#343b46;
--accent:#6cb2f2;--pale:#45566a;--cut:#ff9b61;--mark:#33271a}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Noto Sans",sans-serif;-webkit-text-size-adjust:100%}
main{max-width:56rem;margin:0 auto;padding:1.5rem 1rem 4rem}
header p{margin:0;color:var(--soft)}
h1{font-size:1.7rem;line-height:1.2;margin:.1rem 0;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:0 0 .5rem}
h3{font-size:1.05rem;margin:1.5rem 0 .25rem}
p{max-width:46rem}
section{margin-top:2.5rem;padding-top:1.5rem;border-top:1px solid var(--line)}
small{display:block;color:var(--soft);font-size:.8rem;font-weight:400;line-height:1.35}
p small{display:inline}
code{font:.875em/1.5 ui-monospace,SFMono-Regular,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
pre{background:var(--card);border:1px solid var(--line);border-radius:.4rem;padding:.75rem;white-space:pre-wrap}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.75rem;margin:1.25rem 0 0}
.facts div{background:var(--card);border:1px solid var(--line);border-radius:.4rem;padding:.6rem .8rem}
dt{color:var(--soft);font-size:.85rem}
dd{margin:0;font-size:1.4rem;font-weight:600;font-variant-numeric:tabular-nums}
.notes{background:var(--mark);border-left:3px solid var(--cut);margin:1.25rem 0 0;padding:.6rem 1rem .6rem 2rem;
overflow-wrap:anywhere}
figure{margin:0}
figcaption{color:var(--soft);max-width:46rem;margin-bottom:1.6rem}
.plot{position:relative;margin:0 .75rem 1.9rem 3.4rem;font-size:.78rem;color:var(--soft);
font-variant-numeric:tabular-nums}
.plot svg{display:block;width:100%;height:100%;border-bottom:1px solid var(--soft);overflow:hidden}
.wide{height:clamp(11rem,32vw,17rem)}
.square{max-width:30rem;aspect-ratio:1}
.square svg{border-left:1px solid var(--soft)}
.plot span{position:absolute;white-space:nowrap;line-height:1}
.x{top:calc(100% + .45rem);transform:translateX(-50%)}
.y{right:calc(100% + .45rem);transform:translateY(50%)}
.cutlabel{bottom:calc(100% + .3rem);color:var(--cut);font-weight:600}
.cutlabel.left{transform:translateX(-1rem)}.cutlabel.right{transform:translateX(1rem)}
rect{fill:var(--accent)}
rect.below{fill:var(--pale)}
rect:hover{fill:var(--ink)}
.grid{stroke:var(--line);stroke-width:1;vector-effect:non-scaling-stroke}
.cut{stroke:var(--cut);stroke-width:2;vector-effect:non-scaling-stroke}
.cell{fill:var(--accent)}
.usual,.limit{fill:none;stroke:var(--cut);stroke-width:1.5;vector-effect:non-scaling-stroke}
.limit{stroke-dasharray:5 4}
.legend{color:var(--soft);font-size:.85rem;margin:.5rem 0}
.key{display:inline-flex;align-items:center;gap:.3rem;margin:0 .35rem;white-space:nowrap}
.key svg{width:.85rem;height:.85rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;margin:1.25rem 0 .5rem;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding-bottom:.3rem}
th,td{text-align:right;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left;padding-left:0}
thead th{color:var(--soft);font-size:.85rem;font-weight:600;vertical-align:bottom}
tbody th{font-weight:500}
.marked{background:var(--mark)}
.marked th{font-weight:700}
.bar{display:block;height:.3rem;min-width:1px;background:var(--accent);border-radius:.15rem;margin-left:auto}
td:has(.bar){width:40%}
.scroll td{white-space:nowrap}
.words td,.words th{text-align:left;white-space:normal}
.origin td{overflow-wrap:anywhere}
.origin th:first-child{width:32%}
.compact{max-width:34rem}
.none{color:var(--soft)}
.pairs{table-layout:fixed}
.pairs th:first-child,.pairs td:first-child{width:6.2rem}
.pairs td{text-align:left;overflow:hidden}
.pairs th{text-align:left}
.pairs p{margin:0;text-align:start;overflow-wrap:anywhere;max-width:none}
.pairs p+p{color:var(--soft);margin-top:.15rem}
.pairs tbody th{font-weight:600;padding-top:1.1rem}
.partners{margin:.3rem 0 0;padding-left:.7rem;border-left:2px solid var(--line)}
.partners p+p{margin:.15rem 0 0}.partners p{color:var(--soft)}
.c{font:.72rem/1 ui-monospace,SFMono-Regular,Consolas,monospace;color:var(--cut);border:1px solid;
border-radius:.2rem;padding:0 .15rem;margin:0 .1rem;unicode-bidi:isolate;white-space:nowrap}
details{margin:.75rem 0}
summary{cursor:pointer;color:var(--accent)}
summary:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
@media (max-width:34rem){.m{display:none}.plot{margin-left:2.9rem}
.pairs th:first-child,.pairs td:first-child{width:4.9rem}
th,td{padding:.3rem .35rem}dd{font-size:1.2rem}}
@media print{details{display:none}section{break-inside:auto}}
"""
