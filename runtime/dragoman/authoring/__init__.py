"""What an author of a driver uses: a scaffold, checks, the contract in the sandbox, publishing, developer mode."""
