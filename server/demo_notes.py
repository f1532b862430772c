"""Notes the demo always stores: a small household of facts, rules and events in two languages."""

from __future__ import annotations

NOTES: tuple[dict[str, str], ...] = (
    {
        "layer": "procedural",
        "content": "Deploys of the billing service go out on Tuesdays after 10:00.",
    },
    {"layer": "procedural", "content": "Run the pre-flight check before order ZX-40417 ships."},
    {
        "layer": "semantic",
        "content": "The staging database is restored from production every Sunday.",
    },
    {
        "layer": "semantic",
        "content": "Ana Weber leads the payments team; she prefers short reviews.",
    },
    {"layer": "semantic", "content": "The greenhouse sensor reports in Kelvin, not in Celsius."},
    {"layer": "episodic", "content": "The boiler pump was replaced on Friday after it leaked."},
    {"layer": "episodic", "content": "We moved the nightly backup from 02:00 to 04:30 in March."},
    {"layer": "resource", "content": "The style guide for error messages is in docs/errors."},
    {"layer": "semantic", "content": "Фёдор отвечает за настройку сети на новых станциях."},
    {"layer": "procedural", "content": "Перед выпуском релиза проверяем миграции на копии базы."},
    {"layer": "episodic", "content": "В марте заказчик перенёс приёмку на вторую неделю апреля."},
    {"layer": "semantic", "content": "周二上线后服务器恢复正常,日志保留三十天。"},
)
