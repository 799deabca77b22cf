"""Declining in Spanish: the verb carries the person."""

import re

from policies.judge.voices.voice import NEVER, Voice, pattern

_PRON = r"(?:(?:me|te|le|os|les|lo|la|los|las|se|nos) ){0,2}"
_ADV = r"(?:(?:\w+mente|ya|hoy|aqui|siquiera|tampoco|respetuosamente|con todo respeto|por tanto) )?"
_WORK = (
    r"(?:ayud|asist|resum|redact|escrib|continu|segu|prosegu|proporcion|"
    r"ofrec|cumpl|respond|contest|proces"
    r"|complet|gener|cre|hac|hare|har|realiz|atend|dar|particip|abord|trat|"
    r"trabaj|elabor|produc|registr|narr|complac"
    r"|sintetiz|recog|entrar|comentar|hablar|reproduc|incluir|prest)\w*"
)
_MATERIAL = (
    r"(?:solicitud|peticion|contenido|conversacion|dialogo|chat|texto|material|"
    r"resumen|sintesis|capitulo|respuesta|mensaje"
    r"|tema|tarea|instruccion|consulta|entrada|salida|pasaje|fragmento|"
    r"registro|pregunta|encargo|historia|escena|asunto|transcripcion|informacion)(?:es|"
    r"s)?"
)
_RULES = (
    r"(?:norma|politica|regla|directri|directiva|seguridad|moderacion|filtro|"
    r"pauta|condicion|terminos|lineamiento"
    r"|inapropiad|inadecuad|sensible|prohibid|danin|explicit|delicad|principio|limit|uso)\w*"
)

SPANISH = Voice(
    script=re.compile("[a-z]"),
    first=pattern(
        r"\bno (?:te |le |os |les )?(?:l[oa]s? )?(?:escribo|resumo|redacto|"
        r"hago|doy|cuento|narro|ayudo|respondo"
        r"|contesto|continuo|sigo|participo|trato|proceso|entro|colaboro|"
        r"ofrezco|proporciono|genero)\b",
        rf"\bno {_ADV}{_PRON}{_ADV}(?:puedo|podre|podria|podemos|podremos|"
        rf"podriamos|quiero|deseo|debo|debemos)\b(?! (?:evitar|esperar|"
        rf"dejar de|creer))",
        rf"\bno {_PRON}(?:voy|vamos) a\b",
        rf"\bno {_PRON}(?:estoy|estamos) (?:\w+mente )?(?:en (?:condiciones|"
        rf"posicion|disposicion)|autorizad|capacitad|dispuest|segur|programad|"
        rf"habilitad|facultad|disenad|prepar|aqui para|comod|permitid|de acuerdo)",
        r"\bno (?:tengo|tenemos) (?:permitid|permiso|autoriz|la (?:capacidad|"
        r"posibilidad|potestad)|capacidad|forma|manera|como|intencion|habilitad|"
        r"derecho)",
        r"\b(?:lamento|siento|lamentamos|sentimos) (?:mucho )?(?:decir\w* que )?no\b",
        r"\bno (?:soy|somos|sere) (?:capaz|quien|la persona)",
        r"\bno (?:me|nos) (?:es|esta|sera|resulta|parece|siento|corresponde|"
        r"permite|permiten|veo|considero|encuentro|queda|compete|atrevo|"
        r"presto|gustaria|apetece|prestare)\b",
        rf"\bno {_PRON}(?:continuare|seguire|hare|escribire|redactare|resumire|"
        rf"respondere|proporcionare|participare|ayudare|dare|generare|elaborare|"
        rf"producire|incluire|contestare|ofrecere|tratare|realizare|abordare|"
        rf"creare|entrare|hablare|proceder?e|cumplire|atendere|procesare|"
        rf"contribuire)\b",
        r"\bme (?:niego|abstengo|abstendre|abstendria|negare|rehuso|es imposible|"
        r"resulta imposible|sera imposible|resulta (?:muy )?dificil|veo (?:en la (?:"
        r"obligacion|necesidad)|obligad|forzad|impedid)|veo en|excuso|disculpo de|"
        r"retiro|detengo|detendre|reservo|planto|quedo aqui|opongo)",
        r"\b(?:debo|tengo que|tendre que|he de|prefiero|preferiria|he decidido|"
        r"decidi|opto por|elijo|voy a|quisiera|deberia|considero (?:mejor|"
        r"prudente|oportuno)|lo mejor sera|creo que (?:es mejor|debo)) (?:\w+mente |"
        r"con \w+ )?(?:negarme|declinar|rechazar|abstenerme|rehusar|no\b|"
        r"detenerme|parar|dejarlo|excusarme|decir que no|rehusarme|oponerme)",
        r"(?<!el )(?<!un )(?<!su )\b(?:declino|rechazo)\b (?:\w+mente )?(?:esta|"
        r"este|la|el|tu|su|hacer|escribir|redactar|continuar|resumir|respond|"
        r"realizar|participar|elaborar)",
        r"\b(?:fuera|mas alla) de (?:lo que (?:puedo|me|debo|se me)|mis?\b|"
        r"nuestr)|\b(?:supera|excede|sobrepasa|rebasa)\w* (?:mis?|lo que (?:puedo|"
        r"me|debo))\b",
        r"\bmis? (?:\w+ )?(?:directrices|normas|politicas?|programacion|"
        r"reglas|principios|pautas|instrucciones|lineamientos)\b.{0,40}(?:impid|"
        r"prohib|no (?:me )?(?:permit|dej)|obligan? a)",
        r"\b(?:va|seria|iria|es|resulta) (?:en contra de|contra|contrari[oa] a) mis?\b|"
        r"\b(?:infring|viol|vulner|contravien|incumpl)\w* (?:mis|nuestras?|"
        r"nuestros?)\b",
        r"\bno es algo (?:que|en lo que|con lo que|de lo que) (?:yo )?(?:pueda|"
        r"quiera|deba|puedo|vaya|este|me)\b",
        r"\bno (?:cuentes?|cuenten) conmigo|\bmi respuesta es no\b|\bhasta aqui (?:llego|puedo)\b",
    ),
    bare=pattern(
        r"\bno (?:puede|pueden|podra|podran|debe|deben) (?:ser )?\w+",
        r"\bno (?:es|resulta|sera|seria) (?:\w+mente )?(?:posible|apropiad|"
        r"adecuad|viable|convenient|correct|etic|procedent|factible|licit)",
        r"\bno (?:esta|estan) (?:permitid|autorizad|disponible|habilitad|"
        r"al alcance)|\bno (?:se )?(?:procede|corresponde)\b",
        r"\bno se (?:puede|pueden|podra|podran|ofrece|ofrecera|proporciona|"
        r"proporcionara|genera|generara|permite|admite|da|dara|facilita|"
        r"facilitara|elabora|hara|hace|incluye|incluira|entrega|resume|"
        r"muestra|ha (?:podido|generado))\b",
        r"\b(?:es|resulta|sera) imposible\b|\bimposible (?:\w+ )?" + _WORK,
        r"\b(?:rechazad|denegad|declinad|bloquead|retirad|eliminad|suprimid|omitid)[oa]s?\b",
        r"^\W*(?:lo siento|disculpa|perdon|lamentablemente|por desgracia|"
        r"no)?[\s,.:;]*(?:no|sin poder|incapaz de|imposible)\b",
    ),
    task=pattern(
        r"\bresum\w+|\bsintesis|\bsintetiz\w+|\b(?:este|ese|un|ningun|el) capitulo\b(?!"
        r" de\b)|\bredact\w+|"
        r"\brecapitul\w+|\brelato\b|\bcronica\b",
        rf"\b(?:est[ae]s?|es[ae]s?|es[oa]|est[oa]|tus?|sus?|su|dich[oa]s?|"
        rf"la|el|tal(?:es)?|lo) (?:\w+ )?{_MATERIAL}\b",
        r"\b(?:ayud\w+|asist\w+|cumplir\w*|continuar|seguir|proseguir|atender\w*|"
        r"complacer\w*|procesar\w*|responder\w*)\b",
        r"\b(?:hacer|escribir|decir|dar|ofrecer|proporcionar|tratar|abordar|"
        r"crear|generar|realizar)(?:l[oae]s?|t[eo]|te l[oa])?\b(?: (?:eso|"
        r"esto|lo|una?|el|la|ese|este)\b)?",
        r"\b(?:lo que (?:me )?(?:pide|pides|solicita|solicitas|piden))\b|"
        r"\b(?:modelo de lenguaje|asistente)\b",
    ),
    guard=pattern(
        rf"\bse (?:ha )?(?:detect|identific|encontr)\w+ .{{0,20}}{_MATERIAL} .{{0,16}}{_RULES}",
        rf"\bse (?:ha )?(?:interrump|bloque|deneg|detuv|suprim|filtr|cancel|"
        rf"censur)\w+ (?:la|el|su|tu|esta|este) {_MATERIAL}",
        rf"\b{_MATERIAL}\b.{{0,60}}?\b(?:infring|viol|vulner|contravien|"
        rf"incumpl|no cumpl|va en contra|va contra|ha sido|fue|han sido|"
        rf"esta|queda|se ha|resulta|contien|incluy|no (?:es|esta|puede|"
        rf"se)|activ|se consider|sobrepas|excede|supera)\w*.{{0,80}}?\b(?:{_RULES}|"
        rf"bloquead|rechazad|filtrad|retirad|eliminad|denegad|marcad|restringid|"
        rf"no se|no es posible|censurad|ocultad)\w*",
        rf"^\W*(?:(?:tus?|sus?|est[ae]|la|el) )?{_MATERIAL}(?: \w+)? (?:(?:ha sido|"
        rf"fue|esta|queda|ha quedado) )?(?:\w+mente )?(?:no (?:disponible|"
        rf"permitid|admitid|autorizad)|no (?:puede|podra|pudo) ser|bloquead|"
        rf"rechazad|filtrad|retirad|eliminad|denegad|marcad|restringid|"
        rf"censurad|ocultad|suprimid|omitid)\w*",
        rf"\b(?:bloquead|rechazad|filtrad|retirad|eliminad|denegad|marcad|"
        rf"restringid|ocultad|omitid|suprimid)[oa]s? (?:por|debido a|segun|"
        rf"conforme|a causa)\b.{{0,40}}{_RULES}",
        r"\b(?:el|la|este|esta) (?:asistente|modelo|ia|sistema|inteligencia artificial|"
        r"cronista)\b(?: \w+){0,3}? (?:no (?:puede|podra|esta|tiene|va a|"
        r"desea|debe)|declina|rechaza|se niega|se abstiene|prefiere no)\b.{0,60}(?:est["
        r"ae]|tal|dich[oa]|resum|solicitud|peticion|conversacion|contenido|"
        r"sintesis)",
        r"^\W*(?:acceso|solicitud|peticion|resumen|contenido|respuesta) (?:denegad|"
        r"bloquead|rechazad|no disponible|retirad|filtrad|eliminad|omitid)\w*",
    ),
    deflect=pattern(
        r"^\W*(?:(?:mejor|asi que|por favor|pero|entonces|bueno|y si|que tal si|"
        r"perdon|disculpa|te propongo que|propongo que|en su lugar|si te parece)\b[\s,."
        r":;]*)*(?:hablemos|cambiemos|pasemos|charlemos|tratemos|conversemos|"
        r"dejemos|volvamos|sigamos con|centremonos|busquemos|hablamos|cambiamos|"
        r"pasamos|retomemos|probemos|elijamos)\b.{0,60}",
        r"^\W*(?:(?:por favor|te ruego|le ruego|te pido|le pido|pero)\b[\s,.:;]*(?:que "
        r")?)*(?:reformul|replante|pregunt|intent|prueb|haz|haga|formul|"
        r"elij|elig|modifi|plante|consult|envi|escrib)\w*(?:me|la|lo)? (?:\w+ )?(?:tu|"
        r"su|la|el|otra|otro|de nuevo|algo|una|un|con|sobre)\b",
        r"^\W*¿?(?:(?:te|le|os) (?:parece|gustaria|apetece|importa)|podemos|"
        r"podriamos|quieres|prefieres|hay (?:algo|alguna)|que tal|por que no)\b.{0,40}("
        r"?:otr[ao]|cambi|tema|algo mas|mas en que|algo diferente|algo distint|"
        r"algo menos)",
        r"\b(?:otro tema|otra cosa|otra consulta|otra pregunta)\b[^.]{0,20}$",
    ),
    third=pattern(
        r"(?<!\bse )\b(?!activó|infringió|violó|superó|incumplió|excedió)\w{2,}ó\b",
        r"\b(?:quiso|pudo|dijo|hizo|tuvo|puso|vino|supo|dio|\w{2,}aron|\w{2,}ieron)\b",
        r"\b(?:ella|ellos|ellas|el usuario|la usuaria|los usuarios|usuari[oa]|"
        r"client[ea]|pacient[ea]|jugador\w*|alguien|agente|profesor\w*|"
        r"madre|padre|hermana?o?|doctor\w*|guardia)\b",
        r"\bque (?:no )?(?:podia|queria|debia|iba)\b",
    ),
    narrated=NEVER,
    talk=pattern(
        r"\b(?:yo|me|mi|mis|conmigo|te|ti|tu|tus|usted|ustedes|contigo|os|nos|nuestr[oa]s?)\b",
        r"^\W*(?:lo siento|lo lamento|perdon\w*|disculp\w+|gracias|agradezco|"
        r"hola|lamentablemente|por desgracia|desafortunadamente|entiendo|"
        r"comprendo|claro|por favor|siento|"
        r"lamento|vale|sin embargo)\b|^\W*no\W*(?:$|,)",
        r"\b(?:est[ae]|la|el|dich[oa]|es[ae]) (?:\w+ )?(?:conversacion|"
        r"dialogo|texto|material|solicitud|peticion|contenido|resumen|tarea|"
        r"instruccion|tema|encargo|transcripcion)\b",
        r"\b(?:puedo|podria|quieres|deseas|prefieres|necesitas|desea|quiere|"
        r"estoy|hare|soy|tengo|he leido|leo|prefiero|creo|considero)\b",
    ),
    speaker=pattern(
        r"\b(?:yo|me|mi|mis|conmigo|lo siento|siento|lamento|agradezco|pienso)\b",
        # Who asked another's pardon is told about.
        r"(?<!pidio )(?<!pidió )(?<!pide )(?<!pidieron )(?<!piden )(?<!pedir )"
        r"\b(?:perdon|disculp)(?!\w*(?:ó|aron|aba|aban)\b)\w*",
        r"\b(?:creo|puedo|podria|quiero|prefiero|debo|tengo|soy|estoy|voy|"
        r"paso|considero|entiendo)\b",
    ),
    negative=pattern(
        r"\b(?:no|ni|nunca|jamas|tampoco|imposible|sin|fuera|contra|neg\w+|rechaz\w+|declin\w+)\b",
        r"\b(?:abst\w+|deten\w+|parar|dejarlo|limites?|otr[oa] cosa|esta vez paso|demasiado)\b",
    ),
)
