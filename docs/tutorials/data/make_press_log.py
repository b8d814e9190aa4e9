"""Writes press-log.csv: what was written down about sixteen wine presses over twelve harvests, simulated."""

from __future__ import annotations

import csv
import random

WEAR, CRACK, CURE = 0.3, 0.3, 0.8
"""What the tutorial does not know: a week's wear, the failure of a worn press, a service that helps."""


def main() -> None:
    dice = random.Random(20)
    with open("press-log.csv", "w", newline="", encoding="utf-8") as file:
        log = csv.writer(file, delimiter=";", lineterminator="\n")
        log.writerow(["Harvest", "KW", "Vibration mm/s", "Visits left", "Stopped", "Order"])
        for press in "ABCDEFGHKLMNPRST":
            for year in range(2014, 2026):
                band, visits, week, stopped = 0, 3, 0, False
                while week < 12 and not stopped:
                    serviced = band > 0 and visits > 0 and dice.random() < (0, 0.1, 0.2, 0.35)[band]
                    row = [f"{press}/{year}", 34 + week, 1.5 * band, visits, "no"]
                    log.writerow([*row, "S" if serviced else "-"])
                    if serviced:
                        band, visits = max(0, band - 2) if dice.random() < CURE else band, visits - 1
                    else:
                        chance, risk = dice.random(), (0, 0, CRACK / 4, CRACK)[band]
                        stopped = chance < risk
                        band += band < 3 and risk <= chance < risk + WEAR
                    week += not stopped
                log.writerow(
                    [f"{press}/{year}", 34 + week, 1.5 * band, visits, "yes" if stopped else "no", ""]
                )


if __name__ == "__main__":
    main()
