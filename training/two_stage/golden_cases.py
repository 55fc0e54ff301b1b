# ruff: noqa: RUF001, the cases are in many scripts
"""The texts, choices and requests of the golden cases (`golden.py`)."""

TEXTS = [
    "hello world",
    "I love it 😀",
    "👍🏽 great",
    "🇫🇷 or 🇺🇸?",
    "price → 5 €",
    "[SEP] is plain text",
    "naïve café",
    "5 ≤ x ≠ 7",
    "a\u200db",
    "☂",
    "東京",
    "snake_case stays here",
]
# Of a package for many languages: scripts, marks, white space at the ends, numbers in brackets.
FAR_TEXTS = [
    "Wo bleibt mein Paket? Es ist überfällig!",
    "Mi pedido llegó roto, ¿qué hago?",
    "Где моя посылка, [10] дней жду",
    "أين طردي؟ لم يصل بعد.",
    "الطَّرْدُ لَمْ يَصِلْ",
    "החבילה שלי לא הגיעה",
    "मेरा पार्सल कहाँ है? अभी तक नहीं आया।",
    "พัสดุของฉันอยู่ที่ไหน ยังไม่ได้รับเลย",
    "我的包裹在哪里？已经两个星期了。",
    "荷物はどこですか。まだ届いていません。",
    "កញ្ចប់របស់ខ្ញុំនៅឯណា",
    "e\u0301te\u0301 and o\u0308l",
    "white space at the end \n",
    "two \t\r\n lines \u3000",
    "\u202eabc\u202c",
    "</s> and <s> are plain text",
]
CHOICES = [
    "play_music",
    "playMusic",
    "PlayMusic",
    "PLAY_MUSIC",
    "play-music",
    "play music",
    "iPhone",
    "HTTPServer",
    "turnOnLights",
    "e-mail support",
    "well-known",
    "__init__",
    "_",
    "😀",
    "😢",
    "👍",
    "👎",
    "24/7",
    "[CLS]",
    "  padded  ",
    "ORDER_STATUS",
    "refundRequest",
    "A-1",
    "naïve_choice",
]
REQUESTS = [
    ("The parcel never arrived and nobody answers my mails.", "Is the customer satisfied?", ["yes", "no"]),
    (
        "I was charged twice for my order",
        "Which team should handle this?",
        ["billing", "shipping", "technical support"],
    ),
    ("What a wonderful evening, thank you all!", "Which emotion is expressed?", ["anger", "joy", "sadness", "fear"]),
    (
        "Put some jazz on in the kitchen",
        "What does the user want?",
        ["playMusic", "set_alarm", "TURN_ON_LIGHTS", "weather forecast", "none of these"],
    ),
    (
        "A man is playing a guitar on stage.",
        'According to the text, is the following statement true? "A person makes music."',
        ["true", "false", "cannot be determined"],
    ),
    ("so good 😀", "Which emoji fits?", ["😀", "😢", "😡"]),
    (
        "The central bank raised interest rates by half a point.",
        "What is this about?",
        ["sports", "the economy", "science", "film", "war", "health", "music", "cooking"],
    ),
    ("Who wrote Faust?", "What kind of answer is wanted?", [f"topic {i}" for i in range(40)]),
]
FAR_REQUESTS = [
    ("Mir wurde die Rechnung doppelt abgebucht.", "Which team should handle this?", ["billing", "shipping", "support"]),
    ("我的包裹两个星期了还没到。", "这是关于什么的？", ["付款", "送货", "退货", "以上都不是"]),
    ("لا أحد يجيب على رسائلي.", "هل العميل راضٍ؟", ["نعم", "لا"]),
    (
        "Où est mon colis ? 😡",
        "What does the user want?",
        ["track_order", "Geld zurück", "отменить заказ", "none of these"],
    ),
]


def long_requests(many: bool) -> list[tuple[str, str, list[str]]]:
    """A text without lines and one with them, that do not fit one window; of `many` languages also one whose lines end
    in white space, and one without spaces.
    """
    filler = " ".join(f"Paragraph {i} of the minutes records what was said about item {i}." for i in range(90))
    sentence = filler + " I want my money back, the kettle is broken. " + filler
    before = [f"{i}. the minutes of meeting number {i} and who was there" for i in range(60)]
    after = [f"{i}. a list of what was bought in week {i}" for i in range(60)]
    lines = "\n\n".join([*before, "book me a table for two", *after])
    wanted = ["a refund", "a recipe", "a train ticket", "a table in a restaurant"]
    found = [(sentence, "What does the customer want?", wanted), (lines, "What does the user want?", wanted)]
    if many:
        ended = " \n".join([*before[:45], "reservieren Sie mir bitte einen Tisch für zwei", *after[:45]]) + " \n"
        minutes = "".join(f"会议记录第{i}页写着第{i}项的内容。" for i in range(1, 60))
        found += [
            (ended, "What does the user want?", wanted),
            (f"{minutes}我要退款。{minutes}", "客户想要什么？", wanted),
        ]
    return found
