"""Notices in Spanish: who records, or what is recorded, with a negated or impersonal verb."""

import re

from policies.judge.notices.notice import Notice, bare, blank, forms, then

_MACHINE = (
    r"\b(?:el|al|la|este|esta|un|una) (?:asistente|modelo|ia|sistema|inteligencia artificial"
    r"|narrador"
    r"|narradora|bot)\b"
)
_RECORDER = (
    r"\b(?P<recorder>cronista|modelo de lenguaje|archivista|escriba|recopilador|registrador)\b"
)
_NOW = (
    r"(?:no (?:puede|podra|va a|desea|debe|ofrece|proporciona|es capaz|esta (?:autorizad|permitid"
    r"|en condiciones)\w*)|se (?:niega|abstiene)|declina|rechaza|rehusa|prefiere no|opta por no)"
)
_DENIES = (
    rf"(?:{_NOW}|no (?:pudo|podia|quiso)|se (?:nego|negó|abstuvo)|declin\w+|rechaz\w+|rehus\w+"
    r"|prefirió no|opt[oó] por no|decid\w+ no)"
)
_GAP = r"(?:(?!\b(?:y|pero|asi que|hasta|sin|porque|que)\b)[^,;:]){0,60}?"
_TASK = (
    r"\b(?P<telling>resum\w+|cronica\w*|capitulos?\b(?! de\b)|sintesis|sintetiz\w+|recapitul\w+)"
)
_TELLING = (
    r"\b(?P<telling>resum\w+|cronica\w*|capitulos?\b|sintesis|sintetiz\w+|recapitul\w+|relat\w+"
    r"|narr\w+|registr\w+|descri\w+)"
)
_PASSAGE = r"\b(?P<passage>fragmentos?|pasajes? (?:sobre|de texto)|transcripcion\w*|extractos?)\b"
_RULES = (
    r"\b(?P<rules>politicas?|normas?|directri\w+|(?:de|por) seguridad|delicad\w+|sensibles?"
    r"|inapropiad\w+|inadecuad\w+|apropiad\w+|adecuad\w+|explicit\w+|privacidad|moderacion)\b"
)
_LEFT = (
    r"\b(?P<left>omit\w+|filtrad\w+|suprim\w+|eliminad\w+|excluid\w+|retirad\w+|ocultad\w+"
    r"|censurad\w+"
    r"|no se (?:incluy\w+|describ\w+|registr\w+|recog\w+|reproduc\w+)|no (?:fueron|fue)"
    r" (?:incluid\w+|descrit\w+|registrad\w+)|(?:dej|queda)\w* fuera(?=\W*$| (?:por|porque"
    r"|debido|segun|de (?:est|acuerdo)))"
    r")"
)
_PART = (
    r"\b(?:el resto|lo (?:demas|restante)|contenido restante|(?:algun[oa]s|ciert[oa]s|otr[oa]s"
    r"|l[oa]s)"
    r" (?:\w+ )?(?:detalles|partes|pasajes|fragmentos|contenidos|elementos)|partes? (?:explicitas?"
    r"|del (?:pasaje|texto|relato|dialogo)|de la (?:conversacion|escena)))\b"
)
_VOID = (
    r"(?:no (?:se )?(?:puede|pueden|pudo|podia|podra|debe|deben) (?:ser )?\w+|no (?:es|seria"
    r"|fue|era"
    r"|esta) (?:\w+mente )?(?:posible|apropiad|adecuad|disponible|permitid|convenient)\w*"
    r"|\b(?:rechazad|denegad|retirad|omitid|suprimid|bloquead|ocultad)[oa]s?\b|\binfring\w+"
    r"|\bse (?:ha |han )?(?:omitido|retirado|suprimido|omitió|retiró|ocultado))"
)

_RECORD = (
    r"\b(?:(?P<telling>resumen(?:es)?|cronica|sintesis)|(?:este|el presente)"
    r" (?P<passage>registro|relato|texto|capitulo))\b"
)
_CLOSED = (
    r"\b(?:omit\w+|evit\w+|suprim\w+|censur\w+|filtrad\w+|bloque\w+|oculta\w*|inapropiad\w+"
    r"|inadecuad\w+|no (?:disponible|apt\w+|incluy\w+|abarca|describe|recoge|contiene|se (?:incluy"
    r"|describ|recog)\w+|(?:es|seria|esta|son) (?:apropiad|adecuad|apt|disponible|posible)\w*)"
    r"|en blanco|mas alla|fuera de)\b"
)

SPANISH = Notice(
    script=re.compile("[a-z]"),
    forms=forms(
        r"\b(?:como|al ser|siendo) (?:un |una )?(?:\w+ )?(?:modelo de lenguaje|inteligencia"
        r" artificial|ia\b|asistente (?:de ia|virtual))[^.]{0,20}?,? ?(?:no |solo |unicamente )?"
        r"\b(?:tengo|puedo|poseo|debo|soy|me|mi|cuento|carezco)\b",
        r"\bsoy (?:solo )?(?:un|una) (?P<recorder>ia|inteligencia artificial|modelo de lenguaje)\b",
        rf"{_RECORDER}.{{0,30}}?(?:{_DENIES}|disculp\w+|\bno\b)",
        rf"{_RECORD}.{{0,80}}?{_CLOSED}",
        rf"{_CLOSED}.{{0,80}}?{_RECORD}",
        r"^(?=.*\b(?:contenido|material|texto|conversacion|charla|escena|detalles)\b)"
        rf"(?=.*(?:{_CLOSED}|\bno\b)).*\b(?P<rules>(?:razones|motivos) (?:de seguridad|etic[oa]s"
        r"|legales|de politica)|politica de (?:uso|contenido)\w*|directrices|decoro)\b",
        rf"^[\[(（【][^\])）】]{{0,60}}?{_LEFT}",
        rf"{_MACHINE}.{{0,20}}?{_NOW}{_GAP}{_TELLING}",
        rf"\b(?:ningun\w*|ni un) (?:\w+ )?{_TASK}",
        rf"\bno (?:se )?\w+(?: \w+)? (?:ningun\w* )?{_TASK}",
        rf"\b(?:no (?:es|fue|ha sido|seria) (?:posible|apropiado|adecuado)"
        rf"|imposible){_GAP}{_TELLING}",
        rf"{_TASK}.{{0,120}}?{_VOID}",
        rf"{_PASSAGE}.{{0,160}}?(?:{_VOID}|{_RULES})",
        then(
            r"\b(?:contenido|material|texto|conversacion|dialogo|charla|informacion|escena)s?\b"
            rf".{{0,120}}?{_VOID}",
            _RULES,
        ),
        rf"\b(?:solicitud|peticion) de {_TELLING}.{{0,120}}?{_VOID}",
        rf"{_PART}.{{0,60}}?{_LEFT}",
        rf"\balgunos detalles.{{0,40}}?{_LEFT}",
        r"\bhe (?:\w+mente )?(?P<left>omitido|dejado fuera|suprimido|excluido)\b",
        r"\b(?:debo|tengo que|he de|voy a|tendre que)"
        r" (?P<stop>(?:detenerme|parar|terminar|dejarlo|pararme|interrumpir)\w* (?:aqui|ahi))\b",
        r"\bno se (?:ofrece|da|incluye|aporta)\w* (?:mas|mayor(?:es)?) (?P<telling>descri\w+"
        r"|detalles?)",
        r"\bnada .{0,120}?\b(?:puede|podra|debe) (?P<telling>registr|relat|narr|resum|descri)\w+",
        r"\bse (?:ha )?(?:decidi|opt)\w+ (?:por )?no (?P<telling>registr|relat|narr|resum"
        r"|descri)\w+",
        rf"{_LEFT}.{{0,12}}?\b(?:mas|el resto del|parte del) (?:contenido|material|texto)",
        then(_RULES, r"\bno se (?P<telling>relat|narr|descri|resum|registr)\w+"),
    ),
    reported=forms(
        rf"{_MACHINE}.{{0,20}}?{_DENIES}{_GAP}{_TELLING}",
        then(rf"{_MACHINE}.{{0,20}}?{_DENIES}", _RULES),
        rf"{_MACHINE}.{{0,30}}?\bque no (?P<telling>gener|escrib|produzc|redact)\w+",
    ),
    asked=re.compile(r"resum|sintesis|\bacort|\babrevi|en pocas palabras|\bcondens"),
    rules=bare(_RULES),
    left=bare(_LEFT),
    everyday=re.compile(
        r"capitulos?|relat\w+|narr\w+|registr\w+|descri\w+|detalles?|texto|gener|escrib|produzc"
        r"|redact|escriba|fragmentos?|pasajes?.*"
        r"|transcripcion\w*|extractos?|omit\w+|filtrad\w+|suprim\w+|eliminad\w+|excluid\w+"
        r"|retirad\w+|ocultad\w+|censurad\w+|no (?:se|fueron|fue) .+|(?:dej|queda)\w* fuera"
    ),
    talk=re.compile(
        r"\b(?:charla|conversacion|dialogo|pasaje|fragmento"
        r"|(?:este|el presente) (?:registro|capitulo|relato))\b"
    ),
    theme=re.compile(r"\b(?:lo que\b.{0,60}?\bdij\w+|lo dicho|sobre|acerca de)\b"),
    assistant=re.compile(r"\b(?:asistente|ia|modelo de lenguaje|inteligencia artificial)\b"),
    own=blank(_RULES, _LEFT, _PART, _TELLING, r"\b(?:contenid|text|conversaci|charl|escen|us)\w+"),
    behind=3,
    owner=re.compile(
        r"\| (?:del|de las?|de los|para) (?!conteni|uso|segur|plataf|servi|model|asist|resum|cronic"
        r"|est)\w"
    ),
)
