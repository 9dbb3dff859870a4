"""Before any data are read: what is known, how ε is split, which family is taken, what is promised.

===============  ================================================================================
`outlook`        what is known in public: rows, typical density, what the budget can buy
`split`          how much of the budget the noisy count gets
`pilot`          a private look at density and smoothness, before the rest
`choice`         which family, and with which parameters
`promise`        the (α, η) guarantee: the error that can be promised
`promised`       the layout of least bound, and how many records a promise takes
`plan`           `Plan`: all that is fixed before a sketch is made, and its file
`differences`    what two plans differ in, in words
===============  ================================================================================
"""
