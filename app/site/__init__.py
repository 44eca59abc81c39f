"""The page as a folder of files for any static host: `headlight site OUT`."""
