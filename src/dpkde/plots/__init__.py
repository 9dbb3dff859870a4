"""Pictures of what is public: releases, their differences, plans and ledgers, with matplotlib.

Nothing here is told of pyplot, and no setting of the reader's is changed: figures are made by
themselves, so that notebooks, servers and threads may draw at the same time.
"""
