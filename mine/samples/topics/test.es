weather	Esta noche se esperan lluvias intensas y viento fuerte en la costa.
sport	El equipo ganó el partido por tres a uno y jugará la final.
cooking	Fría las cebollas en mantequilla y añada los tomates y una pizca de sal.
money	El banco subió los tipos de interés y las acciones cayeron.
weather	Mañana hará sol todo el día, con treinta grados de temperatura.
sport	El portero paró un penalti en el último minuto.
cooking	Deje reposar la masa una hora y hornéela veinte minutos.
money	La empresa anunció un beneficio de ochenta millones de euros en el tercer trimestre.
weather	La nieve cubre las montañas y seguirá haciendo frío.
sport	Ella corrió el maratón en menos de tres horas y ganó la medalla de oro.
cooking	Pele las patatas cocidas y aplástelas con leche.
money	La inflación bajó al dos por ciento el mes pasado.
weather	Tras la niebla de la mañana, el tiempo será seco y suave.
sport	El entrenador criticó a sus jugadores después de otra derrota.
cooking	Bata los huevos con el azúcar y añada la harina.
money	El precio del petróleo subió y el euro perdió valor frente al dólar.
weather	La tormenta trajo granizo y relámpagos.
sport	El club ha fichado a un delantero para la próxima temporada.
cooking	Sirva el pescado con limón, pimienta y una ensalada.
money	El déficit del presupuesto obliga al gobierno a pedir más préstamos.
