"""What the library computes on a GPU, registered with `alexp.common.backends` under the roles that the core asks for.

`devices` finds a GPU and wraps array libraries, `wide` keeps tables and values of wide linear models there, `subsets`
enumerates all subsets of columns. None of it is imported before a device is named or an array lives on one.
"""

from alexp.common.backends import register
from alexp.gpu.devices import device_for
from alexp.gpu.subsets import (
    DeviceSuggestions,
    draw_on_device,
    enumerating_card,
    level_subsets,
    ratio_subsets,
    subset_posteriors,
)
from alexp.gpu.wide import device_rows

register("device_for", device_for)
register("device_rows", device_rows)
register("device_suggestions", DeviceSuggestions)
register("draw_on_device", draw_on_device)
register("enumerating_card", enumerating_card)
register("level_subsets", level_subsets)
register("ratio_subsets", ratio_subsets)
register("subset_posteriors", subset_posteriors)
