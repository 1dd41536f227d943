"""From frozen values to the text of the files of a package."""
