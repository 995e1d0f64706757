"""`python -m benchmarks`: speed and memory of every case."""

from benchmarks.run import main

if __name__ == "__main__":
    main()
