package client

// CheckWalletWithin is CheckWallet with another bound of waiting entries.
var CheckWalletWithin = (*History).checkWallet

// EntriesAtOnce is how many entries it reads together.
const EntriesAtOnce = entriesAtOnce
