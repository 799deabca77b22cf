"""Declining in Spanish: the verb carries the person."""

import re

from policies.judge.voices.voice import Voice, pattern

_PRON = r"(?:(?:me|te|le|os|les|lo|la|los|las|se|nos) ){0,2}"
_ADV = r"(?:(?:\w+mente|ya|hoy|aqui|siquiera|tampoco|respetuosamente|con todo respeto|por tanto) )?"
_WORK = (
    r"(?:ayud|asist|resum|redact|escrib|continu|segu|prosegu|proporcion|ofrec|cumpl|respond|contest|proces"
    r"|complet|gener|cre|hac|hare|har|realiz|atend|dar|particip|abord|trat|trabaj|elabor|produc|registr|narr|complac"
    r"|sintetiz|recog|entrar|comentar|hablar|reproduc|incluir|prest)\w*"
)
_MATERIAL = (
    r"(?:solicitud|peticion|contenido|conversacion|dialogo|chat|texto|material|resumen|sintesis|capitulo|respuesta|mensaje"
    r"|tema|tarea|instruccion|consulta|entrada|salida|pasaje|fragmento|registro|pregunta|encargo|historia|escena|asunto|transcripcion)(?:es|s)?"
)
_RULES = (
    r"(?:norma|politica|regla|directri|directiva|seguridad|moderacion|filtro|pauta|condicion|terminos|lineamiento"
    r"|inapropiad|inadecuad|sensible|prohibid|danin|explicit|delicad|principio|limit|uso)\w*"
)

SPANISH = Voice(
    script=re.compile("[a-z]"),
    first=pattern(
        rf"\bno {_ADV}{_PRON}{_ADV}(?:puedo|podre|podria|podemos|podremos|podriamos|quiero|deseo|debo|debemos)\b(?! (?:evitar|esperar|dejar de|creer))",
        rf"\bno {_PRON}(?:voy|vamos) a\b",
        rf"\bno {_PRON}(?:estoy|estamos) (?:\w+mente )?(?:en (?:condiciones|posicion|disposicion)|autorizad|capacitad|dispuest|segur|programad|habilitad|facultad|disenad|prepar|aqui para|comod|permitid|de acuerdo)",
        r"\bno (?:tengo|tenemos) (?:permitid|permiso|autoriz|la (?:capacidad|posibilidad|potestad)|capacidad|forma|manera|como|intencion|habilitad|derecho)",
        r"\bno (?:soy|somos|sere) (?:capaz|quien|la persona)",
        r"\bno (?:me|nos) (?:es|esta|sera|resulta|parece|siento|corresponde|permite|permiten|veo|considero|encuentro|queda|compete|atrevo|presto|gustaria|apetece|prestare)\b",
        rf"\bno {_PRON}(?:continuare|seguire|hare|escribire|redactare|resumire|respondere|proporcionare|participare|ayudare|dare|generare|elaborare|producire|incluire|contestare|ofrecere|tratare|realizare|abordare|creare|entrare|hablare|proceder?e|cumplire|atendere|procesare|contribuire)\b",
        r"\bme (?:niego|abstengo|abstendre|abstendria|negare|rehuso|es imposible|resulta imposible|sera imposible|resulta (?:muy )?dificil|veo (?:en la (?:obligacion|necesidad)|obligad|forzad|impedid)|veo en|excuso|disculpo de|retiro|detengo|detendre|reservo|planto|quedo aqui|opongo)",
        r"\b(?:debo|tengo que|tendre que|he de|prefiero|preferiria|he decidido|decidi|opto por|elijo|voy a|quisiera|deberia|considero (?:mejor|prudente|oportuno)|lo mejor sera|creo que (?:es mejor|debo)) (?:\w+mente |con \w+ )?(?:negarme|declinar|rechazar|abstenerme|rehusar|no\b|detenerme|parar|dejarlo|excusarme|decir que no|rehusarme|oponerme)",
        r"(?<!el )(?<!un )(?<!su )\b(?:declino|rechazo)\b (?:\w+mente )?(?:esta|este|la|el|tu|su|hacer|escribir|redactar|continuar|resumir|respond|realizar|participar|elaborar)",
        r"\b(?:fuera|mas alla) de (?:lo que (?:puedo|me|debo|se me)|mis?\b|nuestr)|\b(?:supera|excede|sobrepasa|rebasa)\w* (?:mis?|lo que (?:puedo|me|debo))\b",
        r"\bmis? (?:\w+ )?(?:directrices|normas|politicas?|programacion|reglas|principios|pautas|instrucciones|lineamientos)\b.{0,40}(?:impid|prohib|no (?:me )?(?:permit|dej)|obligan? a)",
        r"\b(?:va|seria|iria|es|resulta) (?:en contra de|contra|contrari[oa] a) mis?\b|\b(?:infring|viol|vulner|contravien|incumpl)\w* (?:mis|nuestras?|nuestros?)\b",
        r"\bno es algo (?:que|en lo que|con lo que|de lo que) (?:yo )?(?:pueda|quiera|deba|puedo|vaya|este|me)\b",
        r"\bno (?:cuentes?|cuenten) conmigo|\bmi respuesta es no\b|\bhasta aqui (?:llego|puedo)\b",
    ),
    bare=pattern(
        r"\bno (?:es|resulta|sera|seria) (?:\w+mente )?(?:posible|apropiad|adecuad|viable|convenient|correct|etic|procedent|factible|licit)",
        r"\bno (?:esta|estan) (?:permitid|autorizad|disponible|habilitad|al alcance)|\bno (?:se )?(?:procede|corresponde)\b",
        r"\bno se (?:puede|pueden|podra|podran|ofrece|ofrecera|proporciona|proporcionara|genera|generara|permite|admite|da|dara|facilita|facilitara|elabora|hara|hace|incluye|incluira|entrega|resume|muestra|ha (?:podido|generado))\b",
        r"\b(?:es|resulta|sera) imposible\b|\bimposible (?:\w+ )?" + _WORK,
        r"\b(?:rechazad|denegad|declinad|bloquead|retirad|eliminad|suprimid|omitid)[oa]s?\b",
        r"^\W*(?:lo siento|disculpa|perdon|lamentablemente|por desgracia|no)?[\s,.:;]*(?:no|sin poder|incapaz de|imposible)\b",
    ),
    task=pattern(
        r"\bresum\w+|\bsintesis|\bsintetiz\w+|\bcapitulos?\b|\bredact\w+|\brecapitul\w+|\brelato\b|\bcronica\b",
        rf"\b(?:est[ae]s?|es[ae]s?|es[oa]|est[oa]|tus?|sus?|su|dich[oa]s?|la|el|tal(?:es)?|lo) (?:\w+ )?{_MATERIAL}\b",
        r"\b(?:ayud\w+|asist\w+|cumplir\w*|continuar|seguir|proseguir|atender\w*|complacer\w*|procesar\w*|responder\w*)\b",
        r"\b(?:hacer|escribir|decir|dar|ofrecer|proporcionar|tratar|abordar|crear|generar|realizar)(?:l[oae]s?|t[eo]|te l[oa])?\b(?: (?:eso|esto|lo|una?|el|la|ese|este)\b)?",
        r"\b(?:lo que (?:me )?(?:pide|pides|solicita|solicitas|piden))\b|\b(?:directrices|normas|politicas?|modelo de lenguaje|asistente)\b",
    ),
    guard=pattern(
        rf"\b{_MATERIAL}\b.{{0,60}}?\b(?:infring|viol|vulner|contravien|incumpl|no cumpl|va en contra|va contra|ha sido|fue|han sido|esta|queda|se ha|resulta|contien|incluy|no (?:es|esta|puede|se)|activ|se consider|sobrepas|excede|supera)\w*.{{0,80}}?\b(?:{_RULES}|bloquead|rechazad|filtrad|retirad|eliminad|denegad|marcad|restringid|no se|no es posible|censurad|ocultad)\w*",
        rf"^\W*(?:(?:tus?|sus?|est[ae]|la|el) )?{_MATERIAL}(?: \w+)? (?:(?:ha sido|fue|esta|queda|ha quedado) )?(?:\w+mente )?(?:no (?:disponible|permitid|admitid|autorizad)|no (?:puede|podra|pudo) ser|bloquead|rechazad|filtrad|retirad|eliminad|denegad|marcad|restringid|censurad|ocultad|suprimid|omitid)\w*",
        rf"\b(?:bloquead|rechazad|filtrad|retirad|eliminad|denegad|marcad|restringid|ocultad|omitid|suprimid)[oa]s? (?:por|debido a|segun|conforme|a causa)\b.{{0,40}}{_RULES}",
        r"\b(?:el|la|este|esta) (?:asistente|modelo|ia|sistema|inteligencia artificial|cronista)\b(?: \w+){0,3}? (?:no (?:puede|podra|esta|tiene|va a|desea|debe)|declina|rechaza|se niega|se abstiene|prefiere no)\b.{0,60}(?:est[ae]|tal|dich[oa]|resum|solicitud|peticion|conversacion|contenido|sintesis)",
        r"^\W*(?:acceso|solicitud|peticion|resumen|contenido|respuesta) (?:denegad|bloquead|rechazad|no disponible|retirad|filtrad|eliminad|omitid)\w*",
    ),
    deflect=pattern(
        r"^\W*(?:(?:mejor|asi que|por favor|pero|entonces|bueno|y si|que tal si|perdon|disculpa|te propongo que|propongo que|en su lugar|si te parece)\b[\s,.:;]*)*(?:hablemos|cambiemos|pasemos|charlemos|tratemos|conversemos|dejemos|volvamos|sigamos con|centremonos|busquemos|hablamos|cambiamos|pasamos|retomemos|probemos|elijamos)\b.{0,60}",
        r"^\W*(?:(?:por favor|te ruego|le ruego|te pido|le pido|pero)\b[\s,.:;]*(?:que )?)*(?:reformul|replante|pregunt|intent|prueb|haz|haga|formul|elij|elig|modifi|plante|consult|envi|escrib)\w*(?:me|la|lo)? (?:\w+ )?(?:tu|su|la|el|otra|otro|de nuevo|algo|una|un|con|sobre)\b",
        r"^\W*¿?(?:(?:te|le|os) (?:parece|gustaria|apetece|importa)|podemos|podriamos|quieres|prefieres|hay (?:algo|alguna)|que tal|por que no)\b.{0,40}(?:otr[ao]|cambi|tema|algo mas|mas en que|algo diferente|algo distint|algo menos)",
        r"\b(?:otro tema|otra cosa|otra consulta|otra pregunta)\b[^.]{0,20}$",
    ),
    third=pattern(
        r"\b(?:ella|ellos|ellas|el usuario|la usuaria|los usuarios|usuari[oa]|client[ea]|pacient[ea]|jugador\w*|alguien|agente|profesor\w*|madre|padre|hermana?o?|doctor\w*|guardia)\b",
        r"\bque (?:no )?(?:podia|queria|debia|iba)\b",
    ),
    talk=pattern(
        r"\b(?:yo|me|mi|mis|conmigo|te|ti|tu|tus|usted|ustedes|contigo|os|nos|nuestr[oa]s?)\b",
        r"^\W*(?:lo siento|lo lamento|perdon\w*|disculp\w+|gracias|agradezco|hola|lamentablemente|por desgracia|desafortunadamente|entiendo|comprendo|claro|por favor|no|error|aviso|nota|si|como|siento|lamento|vale|sin embargo)\b",
        r"\b(?:est[ae]|la|el|dich[oa]|es[ae]) (?:\w+ )?(?:conversacion|dialogo|texto|material|solicitud|peticion|contenido|resumen|tarea|instruccion|tema|encargo|transcripcion)\b",
        r"\b(?:puedo|podria|quieres|deseas|prefieres|necesitas|desea|quiere|estoy|hare|soy|tengo|he leido|leo|prefiero|creo|considero)\b",
    ),
)
