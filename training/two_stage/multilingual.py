"""Rows in many languages: lines with the same meaning, emotions in film dialogue, questions and names in the text's own language.

`parallel_*` sets hold pairs of an English line and the same line in another language, `train_xed_*` lines with an emotion that was carried over from another
language's annotation. Nobody labelled the pairs; what they teach is that a decision does not depend on the language: a *twin* is one question about both lines of a
pair, and the reading of the other line is drawn to that of the English one.
"""

import random
from dataclasses import replace
from pathlib import Path

from .e5 import parallel
from .records import Decision, read_folder
from .tasks import CROSSED, Mix, Task
from . import negation
from .wordings import EMOTION, POLARITY, TOPIC, TOPICS, renamed

# Of every language's pairs the first are held out, and of the emotions whole languages.
HELD_PAIRS = 60
HELD_LANGUAGES = ("ar", "fi", "pt", "tr", "zh")
SIDES = {"positive": ("joy", "trust"), "negative": ("anger", "disgust", "fear", "sadness")}
MEANING = [
    "Which of these means the same?",
    "Which sentence is a translation of this?",
    "Which line says the same in another language?",
    "Pick the sentence with the same meaning.",
    "Same meaning?",
]
SAME = [
    'Does this mean the same: "{}"?',
    'Is "{}" a translation of this?',
    'Could one say "{}" instead?',
    'Is this what "{}" says?',
]
NOT_SAME = [
    'Does this mean something other than "{}"?',
    'Is "{}" no translation of this?',
    'Would it be wrong to say "{}" instead?',
    'Does "{}" say something else?',
]
EMOTIONS = ("anger", "anticipation", "disgust", "fear", "joy", "sadness", "surprise", "trust")
# By language: the question for the emotion, its names in the order of EMOTIONS, the question for the side, positive, negative, yes, no.
OWN = {
    "de": (
        "Welches Gefühl drückt der Satz aus?",
        "Wut; Erwartung; Ekel; Angst; Freude; Traurigkeit; Überraschung; Vertrauen",
        "Ist das positiv oder negativ?",
        "positiv",
        "negativ",
        "ja",
        "nein",
    ),
    "fr": (
        "Quelle émotion exprime cette phrase ?",
        "colère; attente; dégoût; peur; joie; tristesse; surprise; confiance",
        "Est-ce positif ou négatif ?",
        "positif",
        "négatif",
        "oui",
        "non",
    ),
    "es": (
        "¿Qué emoción expresa la frase?",
        "ira; expectación; asco; miedo; alegría; tristeza; sorpresa; confianza",
        "¿Es positivo o negativo?",
        "positivo",
        "negativo",
        "sí",
        "no",
    ),
    "it": (
        "Quale emozione esprime la frase?",
        "rabbia; attesa; disgusto; paura; gioia; tristezza; sorpresa; fiducia",
        "È positivo o negativo?",
        "positivo",
        "negativo",
        "sì",
        "no",
    ),
    "br": (
        "Que emoção a frase expressa?",
        "raiva; expectativa; nojo; medo; alegria; tristeza; surpresa; confiança",
        "Isto é positivo ou negativo?",
        "positivo",
        "negativo",
        "sim",
        "não",
    ),
    "nl": (
        "Welke emotie drukt deze zin uit?",
        "woede; verwachting; walging; angst; vreugde; verdriet; verrassing; vertrouwen",
        "Is dit positief of negatief?",
        "positief",
        "negatief",
        "ja",
        "nee",
    ),
    "sv": (
        "Vilken känsla uttrycker meningen?",
        "ilska; förväntan; avsky; rädsla; glädje; sorg; förvåning; tillit",
        "Är det positivt eller negativt?",
        "positivt",
        "negativt",
        "ja",
        "nej",
    ),
    "da": (
        "Hvilken følelse udtrykker sætningen?",
        "vrede; forventning; afsky; frygt; glæde; tristhed; overraskelse; tillid",
        "Er det positivt eller negativt?",
        "positivt",
        "negativt",
        "ja",
        "nej",
    ),
    "pl": (
        "Jaką emocję wyraża to zdanie?",
        "złość; oczekiwanie; wstręt; strach; radość; smutek; zaskoczenie; zaufanie",
        "Czy to jest pozytywne czy negatywne?",
        "pozytywne",
        "negatywne",
        "tak",
        "nie",
    ),
    "cs": (
        "Jakou emoci věta vyjadřuje?",
        "hněv; očekávání; znechucení; strach; radost; smutek; překvapení; důvěra",
        "Je to pozitivní, nebo negativní?",
        "pozitivní",
        "negativní",
        "ano",
        "ne",
    ),
    "ru": (
        "Какую эмоцию выражает фраза?",
        "гнев; ожидание; отвращение; страх; радость; грусть; удивление; доверие",
        "Это положительно или отрицательно?",
        "положительно",
        "отрицательно",
        "да",
        "нет",
    ),
    "el": (
        "Ποιο συναίσθημα εκφράζει η φράση;",
        "θυμός; προσμονή; αηδία; φόβος; χαρά; λύπη; έκπληξη; εμπιστοσύνη",
        "Είναι θετικό ή αρνητικό;",
        "θετικό",
        "αρνητικό",
        "ναι",
        "όχι",
    ),
    "ro": (
        "Ce emoție exprimă fraza?",
        "furie; anticipare; dezgust; frică; bucurie; tristețe; surpriză; încredere",
        "Este pozitiv sau negativ?",
        "pozitiv",
        "negativ",
        "da",
        "nu",
    ),
    "hu": (
        "Milyen érzelmet fejez ki a mondat?",
        "harag; várakozás; undor; félelem; öröm; szomorúság; meglepetés; bizalom",
        "Ez pozitív vagy negatív?",
        "pozitív",
        "negatív",
        "igen",
        "nem",
    ),
    "vi": (
        "Câu này thể hiện cảm xúc gì?",
        "tức giận; mong đợi; ghê tởm; sợ hãi; vui mừng; buồn bã; ngạc nhiên; tin tưởng",
        "Câu này tích cực hay tiêu cực?",
        "tích cực",
        "tiêu cực",
        "có",
        "không",
    ),
    "id": (
        "Emosi apa yang diungkapkan kalimat ini?",
        "marah; antisipasi; jijik; takut; gembira; sedih; terkejut; percaya",
        "Apakah ini positif atau negatif?",
        "positif",
        "negatif",
        "ya",
        "tidak",
    ),
    "tr": (
        "Cümle hangi duyguyu ifade ediyor?",
        "öfke; beklenti; tiksinti; korku; sevinç; üzüntü; şaşkınlık; güven",
        "Bu olumlu mu olumsuz mu?",
        "olumlu",
        "olumsuz",
        "evet",
        "hayır",
    ),
    "zh": (
        "这句话表达了什么情绪？",
        "愤怒; 期待; 厌恶; 恐惧; 喜悦; 悲伤; 惊讶; 信任",
        "这是正面的还是负面的？",
        "正面",
        "负面",
        "是",
        "否",
    ),
    "ar": (
        "ما العاطفة التي تعبر عنها الجملة؟",
        "غضب; ترقب; اشمئزاز; خوف; فرح; حزن; مفاجأة; ثقة",
        "هل هذا إيجابي أم سلبي؟",
        "إيجابي",
        "سلبي",
        "نعم",
        "لا",
    ),
    "ja": (
        "この文はどんな感情を表していますか？",
        "怒り; 期待; 嫌悪; 恐れ; 喜び; 悲しみ; 驚き; 信頼",
        "肯定的ですか、否定的ですか？",
        "肯定的",
        "否定的",
        "はい",
        "いいえ",
    ),
    "hi": (
        "यह वाक्य कौन सी भावना व्यक्त करता है?",
        "क्रोध; प्रत्याशा; घृणा; डर; खुशी; दुख; आश्चर्य; विश्वास",
        "यह सकारात्मक है या नकारात्मक?",
        "सकारात्मक",
        "नकारात्मक",
        "हाँ",
        "नहीं",
    ),
    "ko": (
        "이 문장은 어떤 감정을 나타냅니까?",
        "분노; 기대; 혐오; 두려움; 기쁨; 슬픔; 놀람; 신뢰",
        "긍정적입니까, 부정적입니까?",
        "긍정적",
        "부정적",
        "예",
        "아니요",
    ),
}
# Answers that name nothing, as callers write them in these languages.
VERDICTS = sorted(
    {w for _, _, _, _, _, yes, no in OWN.values() for word in (yes, no) for w in (word, word.capitalize())}
    | {"Yes", "No", "True", "False", "YES", "NO"}
)
RESIDUAL = [
    "None of these",
    "None of the above",
    "None",
    "Other",
    "nichts davon",
    "keine davon",
    "Sonstiges",
    "aucun de ces choix",
    "autre",
    "ninguna de estas",
    "otro",
    "nessuno di questi",
    "altro",
    "nenhuma destas",
    "outro",
    "geen van deze",
    "anders",
    "żadne z powyższych",
    "inne",
    "ничего из этого",
    "другое",
    "以上都不是",
    "其他",
    "どれでもない",
    "その他",
    "해당 없음",
    "기타",
    "hiçbiri",
    "diğer",
    "لا شيء مما سبق",
    "غير ذلك",
    "इनमें से कोई नहीं",
    "अन्य",
]


class Multilingual:
    """Draws the rows of its tasks for a mix."""

    def __init__(self, mix: Mix, folder: Path):
        self.mix = mix
        pairs = parallel(folder)
        usable = lambda line: (
            12 <= len(line["en"]) <= 240 and 6 <= len(line["other"]) <= 240 and line["en"] != line["other"]
        )
        self.held = {language: [p for p in found[:HELD_PAIRS] if usable(p)] for language, found in pairs.items()}
        self.pairs = {language: [p for p in found[HELD_PAIRS:] if usable(p)] for language, found in pairs.items()}
        sets = read_folder(
            folder, [p.name.removesuffix(".jsonl.gz") for p in sorted(folder.glob("train_xed_*.jsonl.gz"))]
        )
        emotional = {name.removeprefix("train_xed_"): rows for name, rows in sets.items()}
        self.emotional = {language: rows for language, rows in emotional.items() if language not in HELD_LANGUAGES}
        self.held_emotional = {language: rows for language, rows in emotional.items() if language in HELD_LANGUAGES}
        self.languages = sorted(self.pairs)

    def install(self) -> None:
        """Adds the tasks to the mix."""
        total = sum(task.weight for task in self.mix.tasks.values()) / (1 - sum(SHARES.values()))
        self.mix.tasks |= {name: Task(getattr(self, name), share * total) for name, share in SHARES.items()}

    def pair(self, rng: random.Random) -> tuple[str, dict[str, str]]:
        language = rng.choice(self.languages)
        return language, rng.choice(self.pairs[language])

    def spoken(self, rng) -> Decision:
        """A line of dialogue: its emotion among names in English or in its own language, or its side."""
        language = rng.choice(sorted(self.emotional))
        row = rng.choice(self.emotional[language])
        own = OWN.get(language)
        if rng.random() < 0.45:
            side = next((side for side, emotions in SIDES.items() if row.label in emotions), None)
            if side is None:
                return self.spoken(rng)
            if own and rng.random() < 0.35:
                return replace(
                    row,
                    instruction=own[2] if rng.random() < 0.6 else rng.choice(POLARITY),
                    choices=(own[3], own[4]),
                    label=own[3] if side == "positive" else own[4],
                )
            return self.mix.polarity(replace(row, label=side), POLARITY, rng)
        kept = [row.label, *rng.sample([e for e in EMOTIONS if e != row.label], rng.randint(1, 7))]
        if own and rng.random() < 0.35:
            names = dict(zip(EMOTIONS, own[1].split("; ")))
            asked = own[0] if rng.random() < 0.6 else rng.choice(EMOTION)
        else:
            names, asked = {e: renamed(e, rng) for e in EMOTIONS}, rng.choice(EMOTION)
        return replace(row, instruction=asked, choices=tuple(names[e] for e in kept), label=names[row.label])

    def meaning(self, rng) -> Decision:
        """Which line means the same, in English or in any other language."""
        language, pair = self.pair(rng)
        one, other = ("en", "other") if rng.random() < 0.5 else ("other", "en")
        wrong = [p[other] for p in rng.sample(self.pairs[language], rng.choice((1, 2, 3, 4, 7)))]
        return Decision(
            pair[one], rng.choice(MEANING), tuple(dict.fromkeys([pair[other], *wrong])), pair[other], "parallel"
        )

    def same(self, rng) -> Decision:
        """Whether two lines mean the same, and the opposite question."""
        language, pair = self.pair(rng)
        one, other = ("en", "other") if rng.random() < 0.5 else ("other", "en")
        true = rng.random() < 0.5
        said = pair[other] if true else rng.choice(self.pairs[language])[other]
        if not true and said == pair[other]:
            return self.same(rng)
        return negation.pair(
            Decision(pair[one], "", (), "", "parallel"),
            rng.choice(SAME).format(said),
            rng.choice(NOT_SAME).format(said),
            true,
            rng,
        )

    def twin(self, rng) -> Decision:
        """One question about both lines of a pair; what it is nobody answered."""
        _, pair = self.pair(rng)
        draw = rng.random()
        if draw < 0.5 and self.mix.corpus is not None:
            group = self.mix.corpus.group(rng)
            question, choices = rng.choice(group.instructions), rng.choice(group.choices)
        elif draw < 0.65:
            question, choices = rng.choice(EMOTION), tuple(rng.sample(EMOTIONS, rng.randint(2, 8)))
        elif draw < 0.75:
            question, choices = rng.choice(POLARITY), ("negative", "neutral", "positive")[:: rng.choice((1, 2))]
        elif draw < 0.9:
            question, choices = rng.choice(TOPIC), tuple(rng.sample(TOPICS, rng.randint(3, 9)))
        else:
            question, choices = (
                rng.choice(
                    (
                        "Is someone giving an order?",
                        "Does the speaker ask something?",
                        "Is this friendly?",
                        "Is someone in danger?",
                        "Does the speaker refuse?",
                        "Is it about money?",
                        "Is someone thanked?",
                    )
                ),
                ("yes", "no"),
            )
        row = Decision(pair["en"], question, tuple(choices), CROSSED, "parallel")
        return replace(row, opposite=replace(row, input=pair["other"]))

    def lines(self, count: int, rng: random.Random) -> list[tuple[str, str]]:
        """Pairs for tuning stage A."""
        return [(pair["en"], pair["other"]) for _, pair in (self.pair(rng) for _ in range(count))]

    def held_out(self, count: int, seed: int) -> dict[str, list[Decision]]:
        """Emotions and sides in languages that were left out, and held-out lines among others of the same language."""
        rng = random.Random(seed)
        lines = [(language, p) for language, pairs in sorted(self.held.items()) for p in pairs]
        meaning = []
        for language, pair in rng.sample(lines, min(count, len(lines))):
            wrong = [p["en"] for p in rng.sample(self.held[language], 5) if p["en"] != pair["en"]]
            meaning.append(
                Decision(
                    pair["other"],
                    "Which line of dialogue is this?",
                    tuple(dict.fromkeys([pair["en"], *wrong])),
                    pair["en"],
                    "far_meaning",
                )
            )
        rows = [row for rows in self.held_emotional.values() for row in rows]
        sided = [(row, side) for row in rows for side, emotions in SIDES.items() if row.label in emotions]
        four = ("anger", "fear", "joy", "sadness")
        return {
            "far_meaning": meaning,
            "far_sides": [
                replace(
                    r,
                    instruction="Is the tone of this line positive or negative?",
                    choices=("negative", "positive"),
                    label=side,
                    set="far_sides",
                )
                for r, side in rng.sample(sided, min(count, len(sided)))
            ],
            "far_emotions": [
                replace(r, choices=four, set="far_emotions")
                for r in rng.sample([r for r in rows if r.label in four], count)
            ],
        }


# Of the rows that are not from the everyday corpus, these tasks' shares.
SHARES = {"spoken": 0.08, "meaning": 0.05, "same": 0.03, "twin": 0.12}
