"""The tasks of the mix: functions of a pool and a generator that draw one decision each, by what they ask about.

Shares that stand in a task say how often it takes which form. They were set by hand and kept, since every model since
has been trained with them; a change of one is a change of the recipe.
"""
