Debido a unas obras en la ronda, la línea 7 parará en el hospital en lugar de en el ayuntamiento hasta el 19 de agosto.
Bruno, el perro del pastor, tiene catorce años y pasa la mayor parte del día durmiendo debajo del carro.
El señor Tanaka estará fuera de la oficina hasta el 22 de julio; en caso urgente, escriba a su suplente, la señora Ferrand.
Para el bizcocho, el horno debe estar a 170 grados y la puerta tiene que permanecer cerrada durante la primera media hora.
La travesía a nado del lago de Sanabria reunió a 640 participantes, el mayor de 81 años.
¿Puedo tomar este jarabe con el estómago vacío?
Ganó por una centésima de segundo.
Jonas se ha olvidado los deberes por tercera vez este mes.
El hermano mayor de los gemelos se fue de casa en septiembre y solo vuelve para que le laven la ropa.
Las obras del túnel de Pajares duraron casi veinte años y costaron cuatro veces lo previsto.
¿Podrías bajar un poco la música?
«Una medición no es ninguna medición», solía decir nuestra profesora antes de mandarnos de vuelta al laboratorio.
«Aquí se cena a las diez, en Suecia y en China», declaró mi padre.
El césped de la rotonda se sustituyó por tomillo, lavanda y romero, que apenas necesitan agua.
Por cada kilo de castañas, Amparo regala un cucurucho de papel de periódico y un chiste malo.
El abuelo Anselmo guarda en una caja de puros los dientes de leche de sus nueve nietos.
La jueza suspendió la vista a mediodía.
A los diecinueve años, Matteo batió el récord nacional de los 200 metros mariposa.
¿A quién le toca fregar los platos?
Nuestro avión estuvo cincuenta minutos parado en la pista porque había que descargar una sola maleta.
La oficina de cambio del aeropuerto nos cobró nueve euros por cambiar cien, así que acabamos pagándolo todo con tarjeta.
«En mi ordenador funciona», dijo Tom, y todo el equipo resopló.
El expreso matutino a Viena sale a las 7.15 del andén 2 y los fines de semana no lleva vagón restaurante.
«Lo interesante es cuando algo no encaja», explicó la astrónoma.
El viejo pastor reconocía por la cara a cada una de sus 230 ovejas, aunque a los visitantes les parecían todas iguales.
La tienda de discos sobrevive gracias a los coreanos que buscan flamenco en vinilo.
«Seré breve», empezó el director general, y cincuenta minutos después seguía en la cuarta diapositiva.
La fiscalía retiró los cargos contra las dos enfermeras por falta de pruebas.
La borrasca Herminia dejó 180 litros por metro cuadrado en Grazalema.
El montón de compost debe contener tanto restos verdes (hierba, peladuras) como restos marrones (ramitas, hojas secas); de lo contrario, empieza a oler.
Mi padre lo arregla todo él mismo, y por eso en nuestra casa nada funciona del todo como debería.
Aunque la receta prometía una cena en media hora, a las nueve seguíamos picando cebolla, y al final los niños se fueron a la cama con unos bocadillos de queso por toda cena.
El contrato de la señora Keller contiene una cláusula (sección 9, párrafo 3) que le prohíbe trabajar para la competencia durante los dieciocho meses siguientes a su salida de la empresa.
El revisor dejó que la anciana siguiera el viaje, aunque su billete había caducado el día anterior.
El árbitro expulsó a tres jugadores y a un utillero.
Los alcornoques se descorchan cada nueve años, y en el tronco se pinta la última cifra del año.
¿Quién asume las costas si el demandante retira la demanda?
«Solo muerde a los que le tienen miedo», dijo la dueña del loro mirándome el dedo ensangrentado.
De Potosí a Uyuni el autobús tarda cuatro horas, si no hay bloqueo de carreteras.
La morcilla de Burgos lleva arroz; la de León, sobre todo cebolla.
Los restauradores tardaron cinco años en limpiar el fresco y descubrieron, en la esquina superior izquierda, un perro que ninguna descripción había mencionado jamás.
El tren de Soria no para en Almazán.
«Pague usted lo que considere justo», decía el cartel de la cafetería, y los clientes dejaban de media más de lo que costaba la carta anterior.
¡Feliz cumpleaños, abuelo!
El alquiler del piso de dos habitaciones de al lado subió sesenta euros en enero.
Nuestro archivo ocupa siete sótanos: en el último, según cuentan los veteranos, quedan expedientes de barcos que se hundieron antes de la guerra de Cuba.
«Me interesa más el marco que el lienzo», confesó el coleccionista, y no estaba bromeando.
¿Por qué algunas hojas se ponen rojas en otoño?
Si la impresora no aparece en la lista, compruebe primero que el cable está bien conectado y después instale el controlador que viene en el disco.
Desde que les aislaron el tejado en 2020, los Hofer gastan un tercio menos de gas.
«Otra vez desde el compás 48», dijo el director con voz cansada, «y esta vez mírenme a mí, por favor, y no a sus teléfonos».
Se nos acabaron los paraguas.
La junta de propietarios aprobó cambiar la caldera, rechazó pintar el portal y aplazó por décima vez, entre suspiros y miradas al reloj, la cuestión de quién debe pagar la puerta del garaje.
El recurso fue desestimado porque llegó con un día de retraso.
El grupo grabó su primer disco en un garaje en nueve días y lo pagó lavando coches.
La actualización a la versión 4.3 incorpora un tema oscuro y reduce a la mitad el tiempo de arranque en los teléfonos más antiguos.
El gazpachuelo malagueño se hace con mayonesa, patata y pescado blanco, y hay que servirlo sin que llegue a hervir.
Los escaladores pasaron la noche colgados de la pared, a cuatrocientos metros del suelo, con una tormenta encima, medio litro de agua y una única barrita de chocolate que se repartieron en silencio.
El conserje, que se jubila en junio después de treinta y seis años abriendo la verja a las siete y media, recibió de los niños una llave de cartón de dos metros firmada por todos.
La declaración de la renta debe presentarse antes del 31 de julio, pero quien recurra a un asesor tiene de plazo hasta finales del febrero siguiente.
Un camión cargado con once toneladas de naranjas volcó al amanecer en la carretera de la costa; nadie resultó herido, pero el atasco duró hasta primera hora de la tarde.
El albergue de Roncesvalles ofrece 183 camas y una sopa caliente a quien llegue antes de las siete.
Las víboras son tímidas y suelen desaparecer mucho antes de que un caminante las vea.
La primera nevada sorprendió a los pastores de Babia con las vacas todavía en los puertos.
El bebé por fin se ha dormido.
El equipo femenino entrena los martes y los viernes con luz artificial.
El levante sopla desde hace nueve días y en Tarifa ya nadie duerme bien.
Quien comparte coche con tres compañeros ahorra, en un trayecto de treinta kilómetros al trabajo, más de dos mil euros al año, por no hablar de la búsqueda diaria de aparcamiento.
Unos biólogos de Gante colocaron emisores diminutos a noventa murciélagos y comprobaron que algunos volaban sesenta kilómetros en una sola noche.
La tía Covadonga tuvo tres maridos y los enterró a todos con el mismo abrigo.
¿Quién se ha comido mis lechugas?
Una vaca bloqueó el cercanías de Llanes durante dos horas.
¿Cojo el paraguas o basta con una chaqueta?
¿Te has acordado de sacar la mantequilla de la nevera?
La inflación bajó al 2,1 por ciento en mayo.
¿Habrá segunda vuelta en Chile?
¿Es auténtica la firma del reverso?
Marie Curie ganó el Premio Nobel en dos ciencias distintas: Física en 1903 y Química en 1911.
Los pisos turísticos ocupan ya uno de cada cinco portales del casco viejo.
Durante treinta y un años, Agnes Wirth trabajó en la cabina de señales del enlace ferroviario y, en todo ese tiempo, dice, solo se quedó dormida una vez.
El último autobús sale a las 23:40.
La piloto informó de que sobrevolaríamos el Teide con media hora de retraso.
«Cuidado con el escalón», avisó el capitán cuando los pasajeros bajaban a tierra.
«Este burro ha hecho más kilómetros que tu coche», presumía el cartero jubilado.
En la subasta de Viena, nadie pujó por los dos grandes paisajes procedentes de la herencia del banquero.
Adoptaron a dos hermanos de Medellín en la primavera de 2016.
El taxista se equivocó dos veces de calle y luego se negó a cobrarnos nada.
La guía dice que el pueblo se conserva intacto, pero hoy hay tres tiendas de recuerdos en la plaza y un aparcamiento de autocares donde antes estaba el huerto de frutales.
Antes de notificar un error, compruebe si también se produce en una instalación limpia y anote los pasos exactos, el sistema operativo y el texto completo del mensaje de error.
El ascensor lleva nueve días averiado y el señor Novak, que tiene ochenta y cuatro años, no ha salido de casa desde entonces.
El abogado olvidó su toga.
Estaba previsto que la sonda enviara datos durante noventa días; lleva haciéndolo catorce años.
Solo el 38 por ciento de los bachilleres de la comarca se matricula en la universidad.
Un contable jubilado enseña cada jueves a los vecinos del barrio a leer una nómina.
Los anteriores inquilinos dejaron un armario, dos lámparas rotas y una jaula de loro que nadie vino nunca a recoger.
«Ni un voto para quien cierra hospitales», se leía en las camisetas de las enfermeras.
Una plaga de orugas dejó sin hojas las encinas del valle de Alcudia.
La ferretería alquila taladros, escaleras y una mesa de empapelar por cinco euros al día (fianza: veinte euros).
Los alumnos de cuarto calcularon cuántos garbanzos caben en una piscina olímpica y presentaron el resultado con tres decimales.
¿Merece la pena subir al mirador con este calor?
Begoña contesta 150 correos al día y todavía encuentra tiempo para regar el poto de recepción.
El embajador presentó sus cartas credenciales el 6 de mayo.
¿Puede un menor de catorce años declarar en un juicio sin que lo acompañen sus padres?
«Mire, señora, el melón no se aprieta», protestó el tendero.
La niebla retrasó los primeros vuelos de la mañana y, a las diez, más de doscientos pasajeros esperaban en las puertas de embarque.
Si usted amortiza el préstamo antes de tiempo, el banco le cobra el uno por ciento de la cantidad pendiente.
Por favor, no dejen las bicicletas en el rellano de la escalera.
Plantamos un granado el día que nació Valeria.
Durante la migración a los servidores nuevos, que debía durar una hora y acabó durando toda la madrugada, el soporte atendió 212 llamadas de clientes que no podían abrir su correo.
En la sala 9 se proyecta sin sonido una película de 1927 coloreada a mano.
La guía de Cuzco hablaba quechua, japonés y un inglés lleno de refranes andaluces.
Los percebes se cuecen en agua de mar el tiempo que se tarda en rezar un padrenuestro.
Las acciones de la naviera subieron un siete por ciento después de que esta anunciara su mejor trimestre en una década.
El corazón de una ballena azul pesa más o menos lo que un piano pequeño.
Después del temporal, los guardas forestales contaron más de dos mil píceas caídas en la ladera norte.
Todos los empleados deben cambiar su contraseña antes de fin de mes y no pueden usar ninguna de las cinco últimas.
¡Súbele a la cumbia!
El dibujante hizo el retrato de los 86 vecinos de la aldea, los expuso en los establos y, al terminar la fiesta, dejó que cada uno se llevara el suyo.
Reinicie primero el servidor.
En el santuario viven 64 cerdos, un avestruz ciego y una oca que se cree perro guardián.
La yegua parió de madrugada un potro con una mancha en forma de estrella.
El granizo duró apenas cinco minutos.
Mi abuela nunca pesaba la harina y, sin embargo, el pan le salía igual todos los sábados.
«¡Pan y trabajo!», gritaban los tejedores mientras marchaban hacia la villa del fabricante en el otoño de 1848.
El testamento estaba escrito a mano, fechado el 14 de marzo de 2009 y debidamente firmado, pero los hermanos seguían discutiendo si su padre estaba entonces en su sano juicio.
Lindqvist empató en el minuto 88 con un cabezazo desde apenas tres metros.
«Si quieren ver ballenas, vuelvan en septiembre», nos dijo el pescador.
La oposición abandonó el hemiciclo en señal de protesta.
¿A quién ha salido tan pelirrojo?
La señora Petersen ha ganado el primer premio por sus dalias cinco años seguidos.
Lucía escribió las pruebas automáticas antes que la primera función, y todos la miraron como si estuviera loca.
«¡Protesto, señoría!», exclamó el abogado defensor antes de que la testigo hubiera terminado siquiera la frase.
Priya borró la rama equivocada el viernes por la tarde y se pasó el fin de semana restaurándola desde el portátil de una compañera.
El pelotari de Azpeitia entrena con la mano izquierda desde que se rompió la muñeca derecha en 2019.
Cada Nochebuena discutimos sobre el mismo jarrón roto de 1996.
Mi primo se casa en agosto.
El recibo de la luz subió un 14 por ciento, el del agua un 3 y el del gas, por primera vez en dos años, bajó.
Nuestro guía, un pescador jubilado que se llamaba Duarte, conocía el nombre de todas las rocas de la costa y tenía para cada una su historia, casi siempre de algún naufragio.
El lago ha perdido la mitad de su profundidad desde que empezó a extenderse el carrizo.
El primer día de rebajas, la gente hizo una cola que daba la vuelta a la manzana, algunos con sillas plegables y termos, aunque las puertas no se abrían hasta las nueve.
La reserva marina prohibió el fondeo y en seis años la pradera de posidonia creció un palmo.
El ratón no responde.
Quien firme como avalista responde con todos sus bienes, incluso con los futuros, salvo que en la escritura se haya pactado un límite.
Tras un juicio de sesenta y tres días, en el que declararon más de cien testigos, el antiguo alcalde fue absuelto de cohecho, pero condenado por haber falsificado cuatro facturas.
Olvidé el pasaporte en Lima.
«Cuando las golondrinas vuelan bajo, llueve antes de la noche», solía decir mi padre, y acertaba con una frecuencia sorprendente.
En la farmacia de guardia, a las cuatro de la mañana, un hombre con esmoquin pidió tiritas, un termómetro y, tras pensarlo mucho, una piruleta.
El pleito por la herencia de los Zubiaurre empezó en 1987, ha pasado por cuatro juzgados y ya ha costado más de lo que valen las tres fincas que se disputan.
«Yo no he estado enfermo en mi vida», insistía el señor Haugen mientras el dentista preparaba ya la anestesia.
La veterinaria pesó el erizo (640 gramos), le limpió la herida y nos dijo que le diéramos comida para gatos, pero nunca leche.
Mi abuela guardaba sus ahorros en una lata de galletas detrás de la harina, porque desde 1974 ya no se fiaba de los bancos.
El brote de paperas empezó en una guardería, se extendió a dos colegios y obligó a las autoridades sanitarias a vacunar en diez días a casi tres mil personas que creían estar protegidas.
«Paciencia», dice mi vecino cada vez que me quejo de los espárragos, «antes del tercer año no podrás cortar ninguno».
¿Tienen estos en el número 41?
El tratado, firmado a bordo de un barco para que ninguna de las dos coronas tuviera que pisar el suelo de la otra, se rompió antes de que terminara el verano.
En verano es mejor regar a fondo dos veces por semana que rociar un poco cada tarde, porque el riego profundo hace que las raíces crezcan hacia abajo.
Cuando cayó el Muro de Berlín, el 9 de noviembre de 1989, Anke estaba durmiendo y no se enteró hasta el desayuno.
La librería cierra a las seis.
La federación de piragüismo multó a tres clubes.
Como el autobús del equipo visitante se averió en la autopista, el partido empezó con cincuenta minutos de retraso, y algunos aficionados ya se habían ido a casa.
Los trillizos de Maite cumplieron ocho años y cada uno pidió una tarta diferente.
El hospital comarcal de Verín volverá a tener matrona a partir de noviembre.
El Gobierno congelará en 2026 la tasa de basuras para los hogares de una sola persona.
La directora escribió a todos los padres que los móviles deben permanecer apagados en las mochilas desde el primer timbre hasta el último, incluso durante los recreos.
Nadie sabe quién provocó el incendio.
¿Dónde le duele exactamente?
Los murciélagos cuelgan cabeza abajo porque sus patas son demasiado débiles para despegar desde el suelo, así que simplemente se dejan caer al aire.
El retrato se tenía por una copia hasta que una radiografía hecha en 2014 reveló un boceto anterior bajo la pintura.
La petición contra la autopista la han firmado 52.300 personas, entre ellas dos exministros y todo el cuerpo local de bomberos.
El alcalde no contesta.
¡Qué bochorno!
La señora Lindqvist no quiere un tercer mandato: prefiere ver crecer a sus nietos.
En las salinas anidan flamencos, avocetas y alguna que otra gaviota despistada.
Nunca prestes dinero a quien te cae bien.
A dos mil metros de altitud, el agua hierve a unos 93 grados, por lo que las alubias tardan más en cocerse en la montaña.
El zoólogo mexicano Ulises Barrera pasó dos años en la selva Lacandona contando jaguares con cámaras automáticas, y la que más fotos hizo fue la que un mono se llevó a lo alto de una ceiba.
Los rosales tienen pulgón.
«No recuerdo nada de aquella noche», repitió el acusado siete veces ante el fiscal.
Mañana el tiempo será en general seco en el norte, mientras que por la tarde llegarán chubascos desde el oeste.
¿Está ocupado este asiento?
¿Se permiten bicicletas en el tranvía?
¿Quién ha escondido la tiza?
¿Quién robó el caballito de bronce del vestíbulo?
El Ferrocarril Central del Perú sube a más de 4.700 metros, atraviesa sesenta y nueve túneles y retrocede varias veces en zigzag, de modo que los pasajeros no siempre saben si van o vuelven.
Una tormenta seca encendió siete incendios en la sierra, dejó sin luz a cuatro pueblos y, curiosamente, no soltó una sola gota sobre los campos que llevaban meses esperándola.
El hotel de Oporto le había dado nuestra habitación a otra persona, así que pasamos la primera noche en un sofá del vestíbulo, entre una palmera en maceta y un viajante que roncaba.
La luz del Sol tarda unos ocho minutos en llegar hasta nosotros.
Tome un comprimido por la mañana y otro por la noche, siempre con un vaso lleno de agua.
«Nunca remuevas un risotto con una cuchara de metal», dijo el chef Bellini mientras me daba una de madera.
El desayuno se sirve de 6.30 a 10 en la sala del jardín; los perros solo se admiten en la terraza.
El camino hasta el faro lleva unos cuarenta minutos y no es apto para cochecitos de niño.
El gol de Arriaga en el minuto 94 salvó al equipo del descenso.
La inteligencia artificial confundió una radiografía con un mapa del metro.
Once de los doce miembros del jurado votaron culpable.
La gata odia los domingos.
¿Quién me sabe decir por qué el hielo flota en el agua?
Mañana habrá calima en Lanzarote.
El cuarteto Almaviva grabará las seis sonatas de un compositor gaditano olvidado.
El glaciar ha retrocedido cuarenta metros desde el verano pasado.
La actualización a la versión 4.2 corrige el fallo que se producía cuando el nombre de un archivo contenía una tilde.
Compramos tres hamacas en Mérida y tuvimos que facturarlas como equipaje especial.
El piano no se afina desde Semana Santa.
¡Qué olor tan maravilloso!
En la subasta de Ginebra, la acuarela alcanzó los 68.000 francos, cuatro veces su valor estimado.
Tengan preparados los pasaportes, por favor, y saquen todos los aparatos electrónicos del equipaje de mano.
El festival de Jerez vendió 21.000 entradas en dos horas.
En el laboratorio hace siempre 19 grados, ni uno más ni uno menos.
El órgano de la catedral tiene tubos que no sonaban desde el terremoto.
A causa de la niebla, el descenso se ha aplazado por tercer día consecutivo y los organizadores se plantean ahora trasladarlo a un valle vecino, donde hay menos nieve pero la visibilidad suele ser buena.
El árbitro hizo sonar el silbato.
El tren lleva retraso.
Para medir la contaminación, los investigadores ataron sensores a las mochilas de 250 escolares de Bilbao.
El cronista de la expedición anotó en su diario que llevaban once días sin ver tierra y que el agua sabía a madera podrida.
La diputada por Teruel votó por error en contra de su propia enmienda.
Un equipo de la Universidad de Granada ha descifrado el genoma de un trigo que se cultivaba hace cuatro mil años.
Pele las patatas, córtelas en rodajas finas y déjelas veinte minutos en agua fría para que suelten parte del almidón.
Un juez de línea detuvo el partido de tenis porque una cigarra cantaba demasiado alto.
La clase de 4.º B tiene veintiséis alumnos que, entre todos, hablan once lenguas distintas en casa.
La lista de espera para operarse de cataratas supera los 200 días.
¡No pisar el césped recién sembrado!
El gato quiere salir.
¿Quién toca la gaita en la boda?
Me duele la muela del juicio.
El volcán de la isla lanzó ceniza durante ochenta y cinco días.
El centro comercial abrirá un cine, una bolera y una pista de hielo en el antiguo aparcamiento.
La frontera se cierra a las ocho de la tarde, hora argentina.
Mi sobrina ha decidido que de mayor será bombera, veterinaria y papisa.
A los siete años, Nahuel aprendió a tocar el charango escuchando la radio.
Todos los domingos a mediodía se reúne la familia entera en casa de mis padres, diecinueve personas en dos mesas, y todos hablan a la vez hasta que sirven el pastel.
A partir del 1 de septiembre, el supermercado sustituirá las bolsas de plástico por otras de papel.
El horno de leña del convento se enciende los martes y las monjas venden por el torno rosquillas de anís, yemas y un bizcocho de almendra cuya receta no ha salido nunca de esas paredes.
Tras seis semanas sin una gota de lluvia, la alcaldesa prohibió regar el césped y pidió a todos los hogares que no se ducharan más de tres minutos.
Desde que la pareja abrió una cuenta conjunta, discute menos sobre quién pagó la cena y más sobre si de verdad necesita un segundo coche, un televisor más grande y dos semanas en el trópico.
La locomotora Mikado de 1953 volvió a circular el domingo entre Venta de Baños y Aranda.
Mi compañera de piso ha instalado un columpio en el salón (la dueña aún no lo sabe).
¿Quién me ha quitado la grapadora?
El pueblo ofrece casa gratis durante dos años a las familias con hijos en edad escolar.
Desde que la galería abre los lunes, los jubilados del barrio desayunan delante de los grabados.
Jersey equivocado: la clienta había pedido uno verde y recibió uno naranja.
El edificio de la calle Tetuán tiene goteras en todas las plantas menos en el bajo, donde vive el administrador.
«Jugamos mal y ganamos; firmo para toda la temporada», admitió el técnico.
De los 412 pacientes que participaron en el ensayo, 37 lo abandonaron durante el primer mes, la mayoría porque las inyecciones diarias resultaban demasiado dolorosas.
El metro va lleno.
¡No den de comer a los patos!
El acueducto seguía llevando agua a la ciudad hasta hace poco más de cien años.
Según la encuesta del domingo, el partido verde entraría por primera vez en el parlamento autonómico con cuatro escaños.
Nos robaron la tienda de campaña, pero no los calcetines que había dentro.
¿Con qué se limpia una paellera oxidada?
Los grandes almacenes despedirán a 140 empleados y cerrarán dos de sus cinco plantas.
El piso está en la tercera planta.
La señora Okafor lleva treinta y ocho años al frente de la mercería y todavía sabe dónde está cada botón.
¿Por qué es oscuro el cielo nocturno si hay tantas estrellas?
«Dejadlos pasar», ordenó la abadesa, y los fugitivos se escondieron en el granero del convento.
Un taller de Paracho construye violines con madera de puertas viejas, y los clientes, que vienen incluso de Noruega, esperan hasta tres años para llevarse uno.
Perdió la final de tenis en tres sets.
Los concejales se bajaron el sueldo un 10 por ciento en 2012 y lo han recuperado sin hacer ruido.
¡Está nevando otra vez!
¿Lloverá en la romería?
«¿Quién ha subido esto un viernes a las seis?», preguntó el jefe de equipo con una ceja levantada.
He cubierto las berenjenas con una sábana vieja contra la helada.
La banda municipal de Llíria ensaya los viernes y cuenta con 94 músicos, tres de ellos bisabuelos.
En el estribillo, el cantante cambió el nombre de su exmujer por el de una marca de cerveza.
Devolvieron 1.300 pares de gafas defectuosas en menos de un mes.
El lince que fue liberado en marzo con un collar emisor ha recorrido 410 kilómetros, ha cruzado dos autovías y se ha instalado, al parecer sin intención de marcharse, en un campo de golf.
El coche cama entre Lisboa y Hendaya dejó de circular en 2020.
Un notario leyó en voz alta el contrato de compraventa, página por página, mientras los compradores lo seguían en sus propios ejemplares.
El sábado por la mañana, la asociación de huertos vende plantones, hierbas aromáticas y herramientas usadas en la entrada del camino del Molino.
El equipo femenino de balonmano de Elche perdió el ascenso por la diferencia de goles.
Tres semanas después de las elecciones, los partidos siguen sin ponerse de acuerdo sobre quién debe dirigir el Ministerio del Interior.
En el huerto urbano de Lavapiés hay cuarenta parcelas y una lista de espera de seis años.
Dicen los viejos que, si canta el mochuelo de día, cambia el viento.
La participación fue del 61 por ciento.
Los tomates, en cambio, deben quedarse en el alféizar hasta que pasen las últimas heladas de mayo.
Luca, inmóvil sobre el musgo, contuvo la respiración y observó cómo una zorra llevaba a sus cuatro crías hasta el agua.
Después de la expulsión del portero, el capitán se puso sus guantes y, para asombro de todos, mantuvo la portería a cero durante los treinta y cinco minutos que quedaban.
La reunión de las nueve empezó a las diez y terminó sin acta.
En el puente viejo solo caben coches de menos de dos metros de ancho; los demás deben dar un rodeo de veintisiete kilómetros por la presa.
La vecina del quinto riega las plantas a las siete y el agua cae siempre sobre mi ropa limpia.
La excursión al planetario se ha suspendido por falta de autocares.
Los caracoles se comieron las acelgas, las fresas y hasta la etiqueta de las fresas.
Hay que podar los rosales.
¿Dimitirá la ministra de Hacienda?
Cuando empecé la escuela en un pueblo de montaña, un solo maestro daba clase a los cuarenta niños en la misma aula, y los mayores tenían que ayudar a los pequeños con las cuentas.
La farmacia de enfrente del ayuntamiento está de guardia toda la noche esta semana.
El jefe de estación de Canfranc cultivaba tomates entre las vías muertas.
La fotocopiadora echa humo.
«¡Cuidado con el hueco y no sobrepasen la línea amarilla!», graznó el altavoz.
Hay tres maneras de exportar la tabla: como hoja de cálculo, como texto separado por comas o como imagen.
La maestra de Fuentidueña da clase a seis alumnos de cuatro cursos distintos en la misma aula.
Mi moto no arranca cuando hay humedad.
«Guarde el recibo —aconsejó el vendedor—, porque sin él la garantía no vale nada».
Mi tío Fermín apostó su paga extra a un caballo llamado Relámpago y no ha vuelto a mencionar el asunto.
El experimento volvió a fracasar.
«Ese galgo no corre, vuela», dijo el cabrero.
Los aficionados del Oviedo compraron acciones de su club desde cuarenta países para evitar que desapareciera.
Se alquila estudio con terraza.
Las cigüeñas de Alfaro ya no emigran: pasan todo el invierno junto al vertedero.
«Dibujen lo que ven, no lo que saben», repetía el profesor de plástica.
Hoy vimos un quebrantahuesos.
La máquina de café ha subido de cuarenta a sesenta céntimos.
En la empresa de seguros se puede trabajar desde casa tres días por semana, pero nunca un lunes ni un viernes, porque el director considera que entonces «nadie trabaja de verdad».
«Puede pintar las paredes del color que quiera —dijo la casera—, siempre que vuelvan a estar blancas cuando se marche».
Tras el divorcio acordaron que el perro pasaría los días laborables con él y los fines de semana con ella, un arreglo que al perro parecía gustarle más que a nadie.
La cantera femenina del club ha pasado de 22 niñas a 310 en cinco años.
Con el abono para jubilados, Paquita recorre cada semana los 310 kilómetros que la separan de su hija.
El club, fundado por estibadores en 1908, nunca ha jugado en la máxima categoría ni ha gastado más de lo que sus socios podían permitirse.
Los archivos ardieron en 1734.
La comisión de investigación ha citado a treinta y dos comparecientes, pero once de ellos viven en el extranjero y no tienen obligación de acudir.
Los delfines del estudio reconocieron el silbido de un compañero al que no veían desde hacía veinte años.
¿Muerde tu tortuga?
El ayuntamiento decidió por 24 votos contra 19 cerrar al tráfico la antigua plaza del mercado.
Desde que instalaron la nueva cafetera en la segunda planta, no se ha vuelto a ver a nadie de contabilidad junto al hervidor, y las bolsitas de té han empezado a coger polvo.
¿Qué comían los marineros cuando se acababa la harina?
El manantial da agua clara durante todo el año, incluso cuando el río del valle está casi seco.
El nuevo registro de parejas de hecho entrará en vigor el 15 de febrero.
Los jornaleros de Jaén ocuparon la finca durante tres semanas y la cultivaron antes de que llegara la Guardia Civil.
La panadería de la esquina vende el pan del día anterior a mitad de precio y a las ocho ya no suele quedarle nada.
En el valle, el termómetro bajó el domingo por la noche hasta los 19 grados bajo cero, el valor más bajo desde que la estación empezó a tomar registros en 1951.
En Molina de Aragón el termómetro marcó 17 bajo cero y se helaron hasta las cañerías del cuartel.
La doctora Arrieta receta paseos: cuarenta minutos diarios, preferiblemente cuesta arriba.
¿Cuántas setas distintas crecen en este pinar?
El rey reinó apenas once semanas antes de que los nobles lo empujaran al exilio.
Hay que enviar las hojas de horas antes del día 25.
¡Han vuelto las grullas!
La secretaria judicial leyó el acta con voz monótona mientras la lluvia golpeaba los cristales de la sala, y nadie, ni siquiera el propio demandante, pareció entender que acababa de ganar.
La impresora se ha vuelto a atascar.
Hasta el siglo XVIII, los serenos de la villa cantaban la hora, el tiempo que hacía y, si había ocurrido algo grave, también la noticia.
A la sopa le falta sal.
El examen de química será el 3 de marzo y no el 27 de febrero, como se había anunciado.
Para quince empanadillas hacen falta 400 gramos de harina, un vaso de vino blanco y paciencia.
La selección juvenil de Bolivia empató a dos en El Alto, a más de 4.000 metros de altitud, y los visitantes pidieron oxígeno en el descanso.
¿Quién ha puesto la calefacción a 27 grados?
Ella misma mezcla sus azules (la receta es un secreto de familia).
En la costa hizo mucho menos frío: la capitanía del puerto midió 4 grados a medianoche.
¡Por fin tenemos las llaves!
El buscador interno devuelve 3.700 resultados cuando uno escribe la palabra «vacaciones», pero ninguno de ellos explica cómo pedirlas.
Los romanos construyeron el puente, unas tropas en retirada lo volaron en 1796 y los vecinos lo reconstruyeron con piedra de la misma cantera que había abastecido a los primeros canteros.
Según la sentencia, el comercio debe borrar los datos de sus clientes, informar por escrito a cada uno de ellos y pagar una multa de 240.000 euros.
¿Cuánto tarda el ayuntamiento en conceder una licencia de obras?
Mi hermana Inés se casa el 5 de junio y nadie se ha atrevido todavía a decírselo a nuestra tía abuela.
La compostera no debe oler; si huele, le sobra humedad.
En un día caluroso, un haya adulta puede liberar por sus hojas varios cientos de litros de agua.
La copia de seguridad se ejecuta todas las noches a las dos y media y conserva las últimas treinta copias.
¡Eso no era fuera de juego ni de broma!
Las murallas de la ciudad se derribaron en 1862 para dejar sitio a una ronda bordeada de tilos.
La Audiencia de Valladolid confirmó ayer la condena de seis años para el contable que desvió fondos de la cofradía.
«Prometimos menos burocracia y estamos cumpliendo», dijo el primer ministro mientras mostraba un formulario de cuarenta y siete páginas.
A los cuarenta y tres años, Ingrid corrió su primer maratón en cuatro horas y seis minutos.
«El que corta el jamón no habla», sentenció mi suegro sin levantar la vista del cuchillo.
Una familia de Albacete encontró 18.000 pesetas entre las páginas de un misal y descubrió que ya no podía cambiarlas.
Un carguero con bandera de Panamá lleva tres semanas fondeado frente a Algeciras sin permiso para descargar.
Un análisis de sangre descartó la anemia.
La doctora Okafor examinó la radiografía un buen rato antes de decir que la muñeca no estaba rota, sino que tenía un esguince grave.
El becario tradujo el informe anual entero con faltas de ortografía.
Un gato negro se paseó por el césped durante la prórroga, esquivó a cuatro empleados de seguridad y recibió la mayor ovación que se recuerda en el estadio de Vallecas.
Como la cantante se había quedado sin voz, le pidieron a su hermana, que estaba en la tercera fila con una bolsa de caramelos, que la sustituyera en el papel, y se lo sabía palabra por palabra.
Si la erupción se extiende o le cuesta respirar, no espere a su cita: llame a una ambulancia de inmediato.
¿A qué velocidad cae una gota de lluvia?
Marta siempre hace la maleta tres días antes de salir.
«Eso no me corresponde», respondió Peláez, como de costumbre.
Las bicicletas pueden llevarse gratis fuera de las horas punta, es decir, después de las 9 y antes de las 16 horas.
El fotógrafo pasó doce inviernos en pueblos de pescadores, durmió en bancos de cocina, remendó redes durante el día y solo hizo fotos cuando la gente ya no reparaba en la cámara.
La licencia permite usar la biblioteca en productos comerciales, siempre que se cite a sus autores y se publiquen las modificaciones.
La moneda más antigua de la colección se acuñó en Cartago y muestra una palmera.
¿Por qué la aplicación me pide la ubicación si solo cuenta mis pasos?
Las acciones del fabricante de calzado perdieron una quinta parte de su valor después de que el director general dimitiera sin dar explicaciones.
«Aquí se viene a sufrir», advirtió el entrenador de lucha canaria a los novatos.
Los jóvenes de dieciséis y diecisiete años podrán votar este año por primera vez en las elecciones municipales.
Nadie había tocado el código fuente desde 2011 y, sin embargo, de él dependían cada mes los sueldos de casi novecientos empleados.
Para el adobo necesitará lo siguiente: dos dientes de ajo, el zumo de un limón, una pizca de comino y cuatro cucharadas de aceite de oliva.
En el concurso de tortillas de Betanzos ganó una cocinera que no usaba ni sal.
En el invierno de 1709, la laguna de Venecia se heló con tal fuerza que se podía ir a pie hasta tierra firme.
En virtud del acuerdo firmado el 3 de octubre, los dos países abrirán cuatro nuevos pasos fronterizos, reconocerán mutuamente sus títulos escolares y realizarán cada dos años ejercicios conjuntos de protección civil.
El tren nocturno a Viena sale a las 21.52 del andén 7 y llega a las 6.40 de la mañana siguiente.
El nuevo teleférico transporta hasta 1.800 personas por hora desde el puerto hasta los barrios de la ladera y tarda solo nueve minutos.
El ministro confundió Paraguay con Uruguay dos veces en el mismo discurso.
Los viajeros con destino al aeropuerto deben sentarse en los cuatro primeros vagones, porque el tren se dividirá en Neustadt y la parte trasera continuará hasta la costa.
Estaba previsto que el telescopio entrara en funcionamiento en 2021, pero el espejo se agrietó durante el transporte.
«Eso lo podría haber hecho mi hija de cinco años», murmuró un visitante, y la vigilante respondió con calma: «Pero no lo hizo».
¿Cuánto tiempo es válido este visado?
Saturno se ve esta noche.
La borrasca Irmgard (fuerza 11 en mar abierto) habrá perdido casi toda su intensidad cuando toque tierra el jueves.
El ayuntamiento ha aplazado la decisión sobre la nueva piscina hasta después de las vacaciones de verano.
En la foto de la boda, tomada delante de la ermita un día de tanto viento que el velo tapó a medio cortejo, se distingue al fondo a un muchacho en bicicleta que años después sería mi suegro.
¿Por qué se trasladó la capital del virreinato tan lejos del puerto?
El helio es más ligero que el aire.
Lo que empieza como una sencilla nana para flauta sola va creciendo, a lo largo de veinte minutos, hasta convertirse en una marcha para gran orquesta, antes de hundirse de nuevo en el silencio.
La mermelada de tomate verde se me quemó por contestar al teléfono.
El instituto Jovellanos ha prohibido los móviles también en el recreo.
El examen de historia se ha suspendido porque la señora Lemaire está de excursión con los alumnos mayores.
El comedor escolar sirve lentejas los lunes, pescado los miércoles y protestas todos los días.
La química Elvira Montoya lleva media vida buscando un pegamento que funcione bajo el agua.
Según el artículo 12 del reglamento de la comunidad, queda prohibido tender ropa en la fachada principal los domingos.
Le ha bajado la fiebre desde anoche.
«Suelta el aire antes de apretar el gatillo», le dijo la entrenadora al joven biatleta.
Siembre las zanahorias directamente al aire libre a partir de mediados de marzo, en hileras separadas unos treinta centímetros.
Los gemelos se parecen tanto que hasta su maestra solo los distingue por los zapatos.
El cuadro cuelga torcido.
Entre Altdorf y Brunnen, la línea estuvo cortada once días después de que una roca del tamaño de un camión rodara hasta las vías.
En la cripta de San Millán aparecieron en 1998 los restos de un niño enterrado con una flauta de hueso.
La cooperativa de viviendas prevé construir 120 pisos en el solar de la antigua cervecera, un tercio de ellos reservado a familias con ingresos bajos, además de una guardería y un patio común.
La pertiguista cubana saltó 4,75 metros y se retiró de la competición por una molestia en el tobillo.
El castor que se instaló en 2017 en el arroyo cercano a Altdorf ha construido una presa de once metros de largo, ha inundado un prado y, sin que nadie lo planeara, ha hecho volver a tres especies de libélulas.
El viento arrancó las lonas de los puestos del mercado.
La base de datos se llenó de registros duplicados porque el botón de enviar seguía activo tras la primera pulsación.
Los bomberos de Getafe rescataron a un perro que llevaba dos días en un pozo de nueve metros.
Los patinetes eléctricos no podrán circular por las aceras de Sevilla a partir de octubre.
Los auxiliares de la residencia aprendieron lengua de signos para hablar con un único paciente.
El viejo peral de detrás del cobertizo lo plantó mi bisabuelo el año en que volvió de la mar, y todavía da más fruta de la que podemos regalar.
¿Fue mano o no fue mano?
El horno tiene que alcanzar los 220 grados antes de meter la tarta de manzana.
El 14 de agosto, el único cajero automático de la isla se quedó sin dinero y no lo rellenaron hasta el martes siguiente.
¿Cada cuánto se riega un cactus en invierno?
Las abejas de la Alcarria producen este año la mitad de miel.
En Cádiz nos alojamos en la azotea de una torre desde la que, según el dueño, su tatarabuelo vigilaba la llegada de los barcos de América.
¿Me devolverán la fianza en cuanto me mude?
En la noche del 2 de octubre se escaparon tres burros de la granja escuela y a la mañana siguiente los encontraron, tan tranquilos, en el aparcamiento de la comisaría.
La autopista de peaje entre Burgos y Armiñón es gratuita desde 2018, y desde entonces circulan por ella el doble de camiones.
¡Por fin llegan las vacaciones!
Mañana no hay clase.
«No os mováis», susurró el guía, y a menos de veinte metros pasó una manada de jabalíes con sus rayones.
Mi bisabuelo cruzó los Pirineos a pie en febrero de 1939 con una maleta de cartón, dos mantas y el violín de su hermano.
Abrid los libros por la página 63.
«Lo siento, solo en efectivo», dijo el conductor señalando un pequeño cartel.
Compraron una casa cueva en Guadix por 31.000 euros y tardaron cuatro años en hacerla habitable.
Quien reciba una multa por exceso de velocidad puede recurrirla por escrito en las dos semanas siguientes a la notificación.
La nueva biblioteca (inaugurada la primavera pasada) presta unos 900 libros al mes, casi la mitad de ellos cómics.
La guitarra está desafinada.
El fósil, que durante décadas sirvió de tope para una puerta en casa de un pastor, resultó pertenecer a un reptil marino de más de cinco metros cuya existencia nadie sospechaba.
El capitán brindó la victoria a su abuela.
La modista del callejón arregla cremalleras en diez minutos, cobra lo que le parece y se niega, desde hace años y sin dar explicaciones, a tocar un solo vestido de novia.
La huelga de estibadores dejó sin plátanos a media Europa durante nueve días, aunque en las islas, donde sobraban, los regalaban a la puerta de los almacenes.
A don Eusebio le pusieron un marcapasos a los 96 años y a la semana siguiente estaba podando la parra.
¿En qué carpeta se guardan los informes que genera el programa de facturación?
El portero paró dos penaltis.
¿Cuánto ahorras cada mes?
«Podéis quedaros levantados hasta las nueve», dijo su madre, «pero entonces no habrá cuento».
En el anuncio ponía «luminoso y tranquilo», pero la única ventana daba a un patio interior con seis aparatos de aire acondicionado.
Las hipotecas vuelven a encarecerse.
Desde que Noelia vive en Rosario, su madre se levanta a las cinco para hablar con ella antes de ir al trabajo.
El departamento de compras se traslada el lunes a la cuarta planta del edificio Atlántico.
El ajedrecista ofreció tablas en la jugada 22, se arrepintió y perdió seis horas después.
Irene sacó un nueve en latín sin haber abierto el libro.
Perdimos el último ferri.
Con la marea baja se puede cruzar andando hasta la isla, pero hay que estar de vuelta en menos de cuatro horas.
Nuestro club de remo se reúne a las seis de la mañana (a las siete en invierno) y siempre busca a alguien que lleve el timón.
Cuando la fábrica de conservas suspendió pagos, los proveedores se enteraron por la radio, los trabajadores por un cartel pegado en la verja y el dueño, según contó después, por su propia secretaria.
La zapatería Hermanos Ugarte lleva abierta desde 1921 y nunca ha aceptado tarjetas.
«No hemos perdido por el césped», admitió el entrenador, «hemos perdido porque nadie corría».
Lindqvist también falló un penalti en la primera parte, cuando el marcador seguía en cero a cero.
La reina reinó treinta y un años y sobrevivió a cuatro de sus cinco hijos.
¿Me lo puede envolver para regalo?
«Tendrían que haber venido en mayo», nos dijo el taxista, «antes del calor y antes de los cruceros».
¡No pinches en ese enlace!
El premio de escultura, dotado con 12.000 euros, ha quedado desierto por segunda vez.
Cuando el ascensor se averió con todo el equipo de ventas dentro, celebraron la reunión del lunes entre la quinta y la sexta planta y, según cuentan, nunca se pusieron de acuerdo tan deprisa.
El túnel mide 14,6 kilómetros y un tren de cercanías tarda algo menos de nueve minutos en atravesarlo.
Los embalses del sur están al 23 por ciento de su capacidad, y los meteorólogos no esperan frentes atlánticos antes de que termine el mes.
El loro de la peluquería repite los precios del año pasado.
El segundo ensayo tuvo solo 96 pacientes, pero duró dos años y nadie lo dejó antes de tiempo.
Canta de maravilla.
A las luciérnagas les molesta la luz de las farolas, por eso el pueblo las apaga de junio a agosto a partir de las once.
A Ramiro le devolvieron el carné de conducir después de nueve meses y un curso de veinticuatro horas.
Doña Carmela tuesta el pimentón tres segundos exactos antes de echar el caldo.
Cuatro estudiantes comparten la antigua casa del panadero de la calle del Molino: dos arriba, una en la que fue la tienda y otra en el desván.
Se calcula que uno de cada doce adultos de la región es alérgico al polen del olivo.
La enfermera de noche anotaba el pulso del niño cada quince minutos y le cambió la venda poco antes del amanecer.
¿Cuántas vueltas quedan para la bandera a cuadros?
En esta cocina hay una sola norma: el que se acaba la leche compra la siguiente botella.
El último ferri se canceló a causa del fuerte oleaje.
Las personas mayores deberían hacerse una prueba de audición al menos cada tres años, aunque no hayan notado ningún cambio.
La contraseña debe tener al menos doce caracteres: letras, cifras y un carácter especial.
«Respire hondo y cuente hasta cinco», pidió el fisioterapeuta.
En el museo ferroviario se puede tocar todo: palancas, silbatos y la gorra del revisor.
El jardinero del Palacio de Viana cuida doce patios, más de seiscientas macetas y una glicinia centenaria que, según él, solo florece bien si se le habla.
La vaca Pinta ha ganado el concurso de Torrelavega por tercer año.
La granizada del 4 de junio destrozó los viñedos de Requena en menos de diez minutos.
La ceramista amasa el barro descalza, como hacía su madre, y no vende ninguna pieza que no haya usado antes ella misma durante una semana.
El alquiler es de 890 euros al mes, más unos 150 euros de calefacción y agua.
El coro ensaya todos los miércoles por la tarde en el antiguo parque de bomberos, donde el eco disimula casi todas las notas falsas.
Desde finales de marzo anida una pareja de cigüeñas en la chimenea de la antigua lechería.
¿Cuántos puntos nos faltan todavía?
¡Vaya remate!
«Este vagón huele a naranja», dijo la niña, y todos los viajeros miraron a la monja que pelaba fruta junto a la ventanilla.
El arroz sobrante (de un día como máximo) es el mejor para saltear.
El presidente del cabildo anunció un plan de 60 millones para llevar la fibra óptica a las aldeas.
Falta una pizca de comino.
«El limonero lunero da fruto todo el año», me aseguró la viverista.
¿Qué interés dan por un depósito a tres años?
«Los errores no me molestan», dijo la profesora de música; «lo que me molesta es que dejéis de tocar por ellos».
¿Podríamos pasar la reunión al jueves a las dos y media?
Los candidatos deberán preparar tres piezas: un estudio, un movimiento lento y una obra compuesta después de 1950.
Los camiones eléctricos son más silenciosos, pero pesan más y necesitan paradas más largas.
¿Dónde se compra el bono de diez viajes?
La cooperativa repartió entre los socios un beneficio de 42 euros por cada hectárea de olivar.
Marta reparte su sueldo en tres sobres: alquiler, comida y todo lo demás.
«Menos notas y más silencio», pedía siempre la directora del coro.
El violín se fabricó en Mittenwald en 1787 y lleva cuatro generaciones en la familia.
¿De qué andén sale el regional de Huesca?
Antes de la imprenta, copiar una sola Biblia podía tener ocupado a un escriba más de un año.
El equipo repitió el estudio con 340 voluntarios, en dos laboratorios distintos y con un protocolo más estricto, y esta vez el efecto que tres años antes había acaparado titulares desapareció por completo.
Conviene podar la higuera en enero, cuando no sube la savia.
¿Es verdad que los elefantes tienen miedo a las abejas?
Cuando cerró la tienda del pueblo, cuarenta vecinos pusieron 500 euros cada uno, se hicieron cargo del alquiler y desde entonces venden por turnos, tres mañanas a la semana, comestibles, sellos y leña.
Le adjunto el acta de nuestra conversación del 9 de noviembre, junto con la lista de cuestiones pendientes.
El frutero del mercado de la Boquería coloca los higos uno a uno, como si fueran huevos.
Las notas de gastos (con los recibos originales) deben entregarse en un plazo de cuatro semanas después del viaje.
La saltadora de altura necesitó tres intentos para superar los 1,92 metros.
El ciclista pinchó a ocho kilómetros de la meta, tomó prestada la rueda de un compañero y aun así llegó tercero.
El sismógrafo de la estación de Tortosa registró 58 temblores en abril, casi todos imperceptibles.
Rosa pinta solo de noche.
El Numancia ficha a un delantero finlandés de 33 años que trabajaba de electricista.
Para la exposición, la escultora soldó trescientas llaves viejas hasta formar un árbol de casi cuatro metros de altura.
El equipo de baloncesto de Split remontó veintiún puntos de desventaja en el último cuarto y ganó el partido en la prórroga ante 9.400 espectadores incrédulos.
Los domingos el museo es gratuito.
Un burro de Zamora, la raza más peluda de España, fue la estrella de la feria de San Vitero.
El año pasado se encontró en la antigua oficina de correos, detrás de un panel de madera, la carta de un joven soldado, escrita en 1916 y nunca entregada, junto con una fotografía de su hermana.
El conductor del autobús escolar de Riaza conoce por su nombre a los treinta y cuatro niños y sabe qué madre llega siempre tarde.
La ley de lenguas oficiales se debatió durante nueve horas, con traducción simultánea, dos desmayos y una interrupción por amenaza de bomba que resultó ser una broma de mal gusto.
Un grafitero anónimo cubrió de golondrinas el muro del antiguo matadero en una sola noche.
El retablo viajó a Boston en diecisiete cajas y volvió a Soria en dieciocho.
¿Quién marcó el segundo gol?
La pintora Remedios Salcedo destruyó casi toda su obra temprana en una hoguera en la playa.
Después de once horas a caballo por la meseta, sin cruzarnos con nadie más que un perro y un vendedor de helados inexplicable, llegamos a una estancia donde ya nos esperaban con el asado servido.
El violonchelo, en cambio, es una copia moderna que se terminó hace solo dos años en Cremona.
Con el nuevo compilador, el proyecto tarda once segundos en construirse en vez de cuatro minutos.
Las entradas para el partido de vuelta salen a la venta el lunes a las ocho de la mañana.
El señor Tanaka dirige el departamento de compras desde enero y depende directamente de la junta directiva.
