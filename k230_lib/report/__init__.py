"""Reports for people: pages, workbooks, plots and summaries."""
