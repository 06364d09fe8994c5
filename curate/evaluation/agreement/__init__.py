"""Agreement of raters, in a run or in any table of ratings."""
