package price

// Amounts of money are in micros, millionths of a euro. Payments are in cents.
const (
	MicrosPerCent = 10_000
	MicrosPerEUR  = 1_000_000
)
