"""`python -m bitextmine` is the command `bitextmine`."""

from bitextmine.cli.program import main

if __name__ == "__main__":
    main()
