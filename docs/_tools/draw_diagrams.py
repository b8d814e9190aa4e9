"""Draws the diagrams of the site, SVG files under docs/images/: `python docs/_tools/draw_diagrams.py`.

Plain shapes and words on a light ground, so that they can be read in dark mode and on paper. Each has a title and a description for screen readers.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

IMAGES = Path(__file__).parent.parent / "images"
INK, MUTED, BLUE, ORANGE, GREEN, GROUND = "#1d2733", "#5b6773", "#2a6fb0", "#c8641b", "#2d8a5f", "#ffffff"
PALE = {BLUE: "#e3eef8", ORANGE: "#fbeadd", GREEN: "#e0f2e9", MUTED: "#eef0f2"}


class Drawing:
    """An SVG picture, part by part."""

    def __init__(self, width: int, height: int, title: str, description: str):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'font-family="Helvetica, Arial, sans-serif" font-size="15">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(description)}</desc>",
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
            f'<path d="M0 0 L10 5 L0 10 z" fill="{MUTED}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="{GROUND}"/>',
        ]

    def text(
        self,
        x: float,
        y: float,
        words: str,
        colour: str = INK,
        size: int = 15,
        style: str = "",
        anchor: str = "middle",
    ):
        """Lines, the middle of the block at y."""
        lines = words.split("\n")
        for number, line in enumerate(lines):
            at = y + (number - (len(lines) - 1) / 2) * size * 1.3 + size * 0.35
            self.parts.append(
                f'<text x="{x}" y="{at:.1f}" fill="{colour}" font-size="{size}" text-anchor="{anchor}" {style}>{escape(line)}</text>'
            )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        words: str,
        colour: str,
        size: int = 15,
        round: int = 8,
    ):
        """A rounded box around (x, y), its first line bold."""
        self.parts.append(
            f'<rect x="{x - width / 2}" y="{y - height / 2}" width="{width}" height="{height}" rx="{round}" '
            f'fill="{PALE[colour]}" stroke="{colour}" stroke-width="1.6"/>'
        )
        first, *rest = words.split("\n")
        top = y - len(rest) * size * 0.65
        self.text(x, top, first, INK, size, 'font-weight="bold"')
        for number, line in enumerate(rest, 1):
            self.text(x, top + number * size * 1.3, line, MUTED if colour != MUTED else INK, size - 1)

    def question(self, x: float, y: float, width: float, words: str):
        self.parts.append(
            f'<rect x="{x - width / 2}" y="{y - 27}" width="{width}" height="54" rx="27" fill="{GROUND}" stroke="{INK}" '
            'stroke-width="1.4"/>'
        )
        self.text(x, y, words, INK, 14)

    def arrow(self, *points: tuple[float, float], words: str = "", at: tuple[float, float] | None = None):
        path = " ".join(f"{'M' if not number else 'L'}{x} {y}" for number, (x, y) in enumerate(points))
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{MUTED}" stroke-width="1.8" marker-end="url(#head)"/>'
        )
        if words and at:
            self.text(*at, words, MUTED, 13, 'font-style="italic"')

    def shape(self, kind: str, colour: str, **attributes: object):
        pairs = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in attributes.items())
        self.parts.append(f'<{kind} {pairs} stroke="{colour}" stroke-width="1.8"/>')

    def save(self, name: str):
        (IMAGES / f"{name}.svg").write_text("\n".join([*self.parts, "</svg>\n"]), encoding="utf-8")


def draw_overview():
    picture = Drawing(
        500,
        390,
        "From a model and a log to a policy with a guarantee",
        "A model with unknown parameters and a log go into tightrope. Out come a policy, a guarantee that holds with "
        "probability at least 1 minus delta, and a certificate, which an independent program verifies.",
    )
    picture.box(125, 55, 220, 80, "model\nknown structure,\nunknown parameters", BLUE)
    picture.box(375, 55, 220, 80, "log\nobserved states,\nactions and outcomes", BLUE)
    picture.box(
        250,
        185,
        330,
        86,
        "tightrope\nparameters that fit the data,\nbest policy for the worst of them",
        MUTED,
    )
    picture.box(85, 325, 152, 90, "policy\nan action\nfor each state", GREEN)
    picture.box(250, 325, 158, 90, "guarantee\nholds with\nprobability ≥ 1 − δ", GREEN)
    picture.box(415, 325, 152, 90, "certificate\nverified\nindependently", ORANGE)
    for x, to in ((125, 190), (375, 310)):
        picture.arrow((x, 97), (to, 138))
    for x, to in ((160, 90), (250, 250), (340, 410)):
        picture.arrow((x, 230), (to, 276))
    picture.save("overview")


def draw_decisions():
    picture = Drawing(
        980,
        560,
        "Which region, which sets?",
        "Two decision paths. Region: if the rows have no order in time, take polytope; if at least eight "
        "probabilities are unknown, joint; for the value of one policy that was fixed before the data, slab. Sets: if you doubt that "
        "equal formulas mean equal probabilities, untied; if you trust that but not the formulas, tied; with up to seven coordinates "
        "rectangular, else expression; coupled where the same parameters hold for the whole run and you can wait.",
    )
    picture.text(245, 30, "Which region? (where the parameters can be)", INK, 17, 'font-weight="bold"')
    picture.text(735, 30, "Which sets? (what nature may pick from)", INK, 17, 'font-weight="bold"')
    for y, words, answer, colour in (
        (
            95,
            "Is the order of the rows in time known?",
            ("no", "polytope\nits intervals hold in any order"),
            BLUE,
        ),
        (215, "Are 8 or more probabilities unknown?", ("no", "polytope\nthe default for few of them"), BLUE),
        (
            335,
            "Does one policy matter alone,\nfixed before the data?",
            ("no", "joint\nthe default for many"),
            BLUE,
        ),
    ):
        picture.question(160, y, 290, words)
        picture.box(
            410,
            y,
            150,
            66,
            answer[1].replace(" in any order", "\nin any order").replace(" for ", "\nfor "),
            colour,
            14,
        )
        picture.arrow((305, y), (334, y), words=answer[0], at=(318, y - 14))
    for y in (122, 242):
        picture.arrow((160, y), (160, y + 66), words="yes", at=(180, y + 33))
    picture.arrow((160, 362), (160, 425), words="yes", at=(180, 393))
    picture.box(160, 458, 250, 62, "slab\nnarrow along that value", BLUE, 14)
    for y, words, answer, colour in (
        (
            95,
            "Do you trust that equal formulas\nmean equal probabilities?",
            ("no", "untied\nevery transition alone"),
            ORANGE,
        ),
        (215, "Do you trust the formulas themselves?", ("no", "tied\ncounts are pooled"), ORANGE),
        (335, "At most 7 unknown coordinates?", ("no", "expression\nthe default for many"), GREEN),
    ):
        picture.question(650, y, 290, words)
        picture.box(
            895,
            y,
            150,
            66,
            answer[1].replace("every ", "every\n") if "every" in answer[1] else answer[1],
            colour,
            14,
        )
        picture.arrow((795, y), (819, y), words=answer[0], at=(807, y - 14))
    for y in (122, 242):
        picture.arrow((650, y), (650, y + 66), words="yes", at=(670, y + 33))
    picture.arrow((650, 362), (650, 425), words="yes", at=(670, 393))
    picture.box(630, 458, 210, 62, "rectangular\nthe default for few", GREEN, 14)
    picture.arrow((736, 458), (818, 458), words="can wait", at=(775, 446))
    picture.box(895, 458, 150, 66, "coupled\nthe same truth\nfor the whole run", GREEN, 14)
    picture.text(
        490,
        528,
        "Leave both out, and tightrope takes the defaults from the model and from how the data were sampled, never from\n"
        "what was seen, and says why. Choose before you look at results: choosing afterwards costs the confidence.",
        MUTED,
        14,
    )
    picture.save("which-region-which-sets")


def draw_chain():
    picture = Drawing(
        980,
        420,
        "The chain of sets",
        "Nested shapes around the true probabilities: untied is the largest, then tied and parameter, which overlap, then expression, "
        "rectangular, and coupled as the smallest around the truth. Smaller shapes give tighter guarantees.",
    )
    centre = (330, 215)
    picture.shape("rect", ORANGE, x=30, y=30, width=600, height=370, rx=18, fill=PALE[ORANGE])
    picture.shape("rect", ORANGE, x=80, y=75, width=470, height=255, rx=14, fill="#f6d9c2")
    picture.shape("rect", BLUE, x=130, y=110, width=470, height=262, rx=14, fill="#cfe0f1", fill_opacity=0.75)
    picture.shape("rect", BLUE, x=165, y=140, width=330, height=165, rx=10, fill="#b4d0ea")
    picture.shape("polygon", GREEN, points="190,225 250,160 420,165 470,240 400,288 245,285", fill="#bfe4d1")
    picture.shape(
        "path", GREEN, d="M245 262 C 275 190, 330 250, 430 195", fill="none", stroke_linecap="round"
    )
    picture.parts[-1] = picture.parts[-1].replace(
        'stroke-width="1.8"', 'stroke-width="9" stroke-opacity="0.75"'
    )
    picture.parts.append(f'<circle cx="{centre[0]}" cy="{centre[1] + 9}" r="5.5" fill="{INK}"/>')
    picture.text(centre[0] + 30, centre[1] + 30, "the truth", INK, 14)
    for x, y, words in (
        (70, 53, "untied"),
        (112, 92, "tied"),
        (550, 355, "parameter"),
        (216, 157, "expression"),
        (355, 274, "rectangular"),
    ):
        picture.text(x, y, words, INK, 14, 'font-weight="bold"')
    picture.text(352, 198, "coupled", INK, 14, 'font-weight="bold"')
    notes = (
        ("untied", "every transition has an interval of its own"),
        ("tied", "counts of equal formulas are pooled"),
        ("parameter", "formulas over a box of parameters"),
        ("expression", "formulas over the region, each on its own"),
        ("rectangular", "the formulas of one choice together"),
        ("coupled", "one parameter vector for the whole run"),
    )
    for number, (word, meaning) in enumerate(notes):
        picture.text(655, 62 + number * 56, word, INK, 15, 'font-weight="bold"', "start")
        picture.text(655, 82 + number * 56, meaning, MUTED, 12, "", "start")
    picture.save("chain-of-sets")


def draw_tying():
    picture = Drawing(
        980,
        270,
        "Tying: places with the same formula are the same experiment",
        "Three choices in different states have the outcome p, seen 7 of 20, 2 of 9 and 31 of 71 times. Untied, each has a wide "
        "interval of its own. Tied, they are one event, seen 40 of 100 times, with one narrow interval.",
    )
    rows = (
        (55, "press in week 1", "7 of 20", 0.35, 0.13, 0.63),
        (125, "press in week 5", "2 of 9", 0.22, 0.01, 0.66),
        (195, "press in week 9", "31 of 71", 0.437, 0.30, 0.59),
    )
    for y, where, seen, middle, low, high in rows:
        picture.box(100, y, 160, 44, f"{where}\np: {seen}", BLUE, 13)
        _interval(picture, 205, y, 190, low, middle, high, ORANGE)
        picture.arrow((410, y), (470, 125 + (y - 125) * 0.2))
    picture.text(300, 245, "untied: three intervals, each from its own counts", MUTED, 14)
    picture.box(570, 125, 190, 58, "one event\np: 40 of 100", BLUE, 14)
    picture.arrow((666, 125), (706, 125))
    _interval(picture, 720, 125, 220, 0.28, 0.40, 0.53, GREEN)
    picture.text(770, 245, "tied: the same coin wherever it is tossed", MUTED, 14)
    picture.save("tying")


def _interval(
    picture: Drawing, x: float, y: float, width: float, low: float, middle: float, high: float, colour: str
):
    picture.shape("line", MUTED, x1=x, y1=y, x2=x + width, y2=y)
    picture.parts.append(
        f'<rect x="{x + low * width}" y="{y - 6}" width="{(high - low) * width}" height="12" rx="6" fill="{colour}" fill-opacity="0.75"/>'
        f'<circle cx="{x + middle * width}" cy="{y}" r="4" fill="{INK}"/>'
    )
    picture.text(x, y + 18, "0", MUTED, 12)
    picture.text(x + width, y + 18, "1", MUTED, 12)


def draw_coupled():
    picture = Drawing(
        980,
        250,
        "Rectangular and coupled sets",
        "Above, rectangular: at each of three choices of a run nature picks another point of the region. Below, coupled: one point of "
        "the region holds at all three choices, as in reality.",
    )
    for y, words, points, colour in (
        (70, "rectangular:\nanother point\nat every choice", ((-22, -10), (24, 4), (-2, 18)), ORANGE),
        (185, "coupled:\none point for\nthe whole run", ((8, -2),) * 3, GREEN),
    ):
        picture.text(105, y, words, INK, 15)
        for number, (dx, dy) in enumerate(points):
            x = 320 + number * 250
            outline = " ".join(
                f"{x + px},{y + py}"
                for px, py in ((-50, 5), (-30, -30), (25, -34), (52, -2), (20, 32), (-32, 30))
            )
            picture.shape("polygon", colour, points=outline, fill=PALE[colour])
            picture.parts.append(f'<circle cx="{x + dx}" cy="{y + dy}" r="6" fill="{colour}"/>')
            if number:
                picture.arrow((x - 190, y), (x - 62, y))
            picture.text(x, y + 50, f"choice {number + 1}", MUTED, 13)
    picture.save("coupled")


def draw_nature():
    picture = Drawing(
        980,
        210,
        "Agent and nature",
        "The agent sees a state and picks a choice. Nature then picks the probabilities of that choice from what the data leave open, "
        "an interval from 0.28 to 0.53. A next state is drawn, and the agent is asked again.",
    )
    picture.box(90, 95, 130, 54, "a state\nwear = 2", MUTED, 14)
    picture.arrow((158, 95), (226, 95))
    picture.box(310, 95, 160, 66, "the agent\npicks a choice:\nrun or service", BLUE, 14)
    picture.arrow((393, 95), (461, 95))
    picture.box(590, 70, 250, 66, "nature\npicks p from what the data\nleave open", ORANGE, 14)
    _interval(picture, 490, 130, 200, 0.28, 0.5, 0.53, ORANGE)
    picture.arrow((718, 95), (786, 95))
    picture.box(875, 95, 160, 54, "chance draws\nthe next state", MUTED, 14)
    picture.arrow((875, 125), (875, 185), (90, 185), (90, 126))
    picture.save("nature")


def draw_pilot():
    picture = Drawing(
        980,
        180,
        "The pilot",
        "A bar of data from the first event to the last. The first tenth is the pilot: it decides where to bet. The rest gives the "
        "interval, which holds because the decision did not see it.",
    )
    for x, width, colour, words in ((40, 110, ORANGE, "pilot"), (150, 790, BLUE, "the rest of the data")):
        picture.shape("rect", colour, x=x, y=40, width=width, height=40, fill=PALE[colour])
        picture.text(x + width / 2, 60, words, INK, 15)
    picture.text(95, 22, "first", MUTED, 13)
    picture.text(915, 22, "last", MUTED, 13)
    picture.arrow((95, 82), (95, 118))
    picture.text(40, 145, "decides where to bet,\nand costs no confidence", INK, 14, anchor="start")
    picture.arrow((250, 140), (395, 140))
    picture.arrow((545, 82), (545, 118))
    picture.text(
        410,
        145,
        "gives the interval: it holds, as the decision\ndid not look at this part",
        INK,
        14,
        anchor="start",
    )
    picture.save("pilot")


def draw_facets():
    picture = Drawing(
        980,
        230,
        "Facets of a region",
        "The same round region of two parameters, enclosed by four facets and by eight. With more facets less is enclosed that the data "
        "exclude.",
    )
    corners = {
        4: ((-78, -78), (78, -78), (78, 78), (-78, 78)),
        8: ((-78, -32), (-32, -78), (32, -78), (78, -32), (78, 32), (32, 78), (-32, 78), (-78, 32)),
    }
    for x, (count, points) in zip((240, 640), corners.items(), strict=True):
        outline = " ".join(f"{x + px},{100 + py}" for px, py in points)
        picture.shape("polygon", GREEN, points=outline, fill=PALE[GREEN])
        picture.shape("circle", BLUE, cx=x, cy=100, r=77, fill=PALE[BLUE])
        picture.text(x, 100, "what the data\nleave open", INK, 14)
        picture.text(x, 208, f"{count} facets", MUTED, 14)
    picture.text(440, 100, "more facets:\ntighter,\nand slower", INK, 14)
    picture.text(780, 45, "a facet: one linear\ninequality, p + q ≤ 0.8", MUTED, 13, anchor="start")
    picture.arrow((776, 50), (704, 44))
    picture.save("facets")


def draw_all():
    words = (draw_nature, draw_pilot, draw_facets)
    for draw in (draw_overview, draw_decisions, draw_chain, draw_tying, draw_coupled, *words):
        draw()


if __name__ == "__main__":
    draw_all()
