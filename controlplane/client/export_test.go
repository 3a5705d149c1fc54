package client

// CheckWalletWithin is CheckWallet with another bound of waiting entries, and EntriesAtOnce how
// many it reads together.
var CheckWalletWithin = (*History).checkWallet

const EntriesAtOnce = entriesAtOnce
