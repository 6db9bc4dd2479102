"""A static timing model of the XuanTie C908. Its results are modelled, never measured."""
