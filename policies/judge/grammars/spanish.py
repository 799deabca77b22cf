"""Who did what in Spanish: the subject stands first where it is named."""

import re

from policies.judge.grammars.grammar import Grammar, whole_word
from policies.judge.terms import terms

_LEAD = (
    r"(?:(?:se|le|les|la|lo|los|las|me|tambien|ya|muy|ha|han|habia|habian|esta|estaba|estan"
    r"|estaban|fue|fueron|qued[oó]|ambos|ambas|despues|luego|no|\w+mente),? )*"
)
_TELLING = (
    r"(?:dijo|dice|cont[oó]|cuenta|explic|mencion|anadi|pregunt|quiere|quiso|tiene|tenia|esta\b"
    r"|estaba|va\b|iba\b|ha\b|habia|felicit|elogi|anim|ofreci|propus|sugiri|acept|agradec)"
)
_MANNERS = frozenset(
    stem[:5]
    for stem in (
        "siente sintio sentir gusta gustaria encanta feliz contento contenta contentos orgulloso"
        " orgullosa emocion emocionada emocionado importante apoyo apoyar foto fotos cosas tiempo"
        " gente personas siempre nunca mucho mucha muchos muchas mejor ahora luego antes quiere"
        " quiero quiso puede puedo podia hacer hizo hecho hace tengo tiene tenia vida semana"
        " pasada pasado proxima proximo manana ayer noche anos estoy estaba nada todo todos todas"
        " cada algo alguien nuevo nueva gran grande buena bueno dice dijo cuenta hablo hablaron"
        " compartio menciono verdad gracias hola vamos solo ella ellos segun tres cuatro cinco"
        " seis siete ocho nueve diez"
    ).split()
)


def _matters(text: str) -> set[str]:
    return terms(text) - _MANNERS


SPANISH = Grammar(
    lead=r"\W*(?:(?:(?!{name})[^,.;]){{1,60}}, |\w+mente |luego |despues )?",
    subject=(
        r"(?:(?P<they>ell[oa]s|ambos|ambas)\b|(?P<first>{name})\b(?: [ye] (?P<second>{name})\b)?)"
    ),
    joint=(
        r"{apart},? (?:y|e|mientras(?: que)?|pero|aunque) (?=(?:{name}|ella)\b)|; "
        r"|, (?=(?:{name})\b)"
    ),
    further=re.compile(rf",? y (?=(?:se |le |la |lo |tambien )*{_TELLING}\w*)"),
    told_them=r"^le (?:cont[oó]|dijo|explic[oó]|coment[oó]|confes[oó]) a (?:{name}) (?:que|lo"
    r"|sobre|como)\b",
    answers=re.compile(
        rf"^{_LEAD}(?:pregunt|quiso saber|quiere saber|interes|elogi|alab|felicit|anim|agradec"
        r"|admir|sugir|sugier|propus|propon|aconsej|desaconsej|recomend|recomiend|ofrec|acept"
        r"|rechaz|neg[oóa]|niega"
        r"|promet|alegr|oy|escuch|acuerdo|estuvo de|esta de|coincid|consol|apoy|enter|supo"
        r"|record|respond|contest|pidi|pide|cre[eiy]|pens|piens|opin|consider|dese|esper|sorprend"
        r"|impresion|emocion|envidi|brome|advirt|advierte|insist|admit|convenc|asegur|tranquil"
        r"|entendi|entiende|comprend|content|ri[oóe]|burl|suspir|sonri|envidi|preocup|dud[oóa]"
        r"|critic|disculp|alivi|conmov|fascin|sab|confirm|horroriz|indign|escandal"
        r"|no pod[ií]a creer|no puede creer|lament|quer[ií]a saber|curios"
        r"|sient\w* (?:much[oa] )?(?:curios|pena|que\b)|impacient|curios|bien"
        r"|valor)"
        r"|\b(?:debe|deben|debia|deberia|tiene que|tenia que|hay que|va a|van a|hara|usara"
        r"|probara|tomara|seguira|pondra)\b"
    ),
    together=re.compile(
        rf"^{_LEAD}(?:habl|convers|charl|discut|coment|compart|qued|planea|plane|plan|acord|acuerd"
        r"|reun|encontr|vieron|disfrut|recuerd|record|intercambi|decid|van |iran |apoy|coincid)"
    ),
    theirs=re.compile(r"\bsus?\b(?! propi)"),
    addressed=re.compile(
        r"^\W*(?:(?:y|pues|mejor|entonces|primero|luego|por favor),? )*(?:no )?(?:usa|prueba"
        r"|toma|haz|pon"
        r"|ve|di|pide|llama|mira|pregunta|agrega|anade|ejecuta|revisa|quita|cambia|evita|compra"
        r"|deja"
        r"|manda|escribe|lee|espera|corta|mezcla|guarda|abre|cierra|elige|busca|bebe|descansa|lleva"
        r"|\w+(?:ate|ete|ite|ame|alo|ala|elo|ela))\b|"
        r"\?|\b(?:tu|tus|te|ti|contigo|usted|ustedes|vos|vosotr[oa]s|os|vuestr\w+|tuy[oa]s?)\b"
        r"|\b(?!hast)\w{2,}[ai]ste\b"
    ),
    named=whole_word,
    matters=_matters,
)
