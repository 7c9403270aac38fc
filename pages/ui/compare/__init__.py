"""Components of the Compare page: choice of runs, scores, curves, linked maps, paired examples and twins."""
