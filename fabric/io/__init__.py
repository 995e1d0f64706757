"""Results in and out: directories of files, pandas data frames, Arrow tables. One format a file."""
