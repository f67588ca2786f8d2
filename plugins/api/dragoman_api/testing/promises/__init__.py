"""The promises of the contract, by what they are about."""
