package pattern

// Total adds up the sizes of patterns that are kept together. The zero Total is empty.
type Total struct{ size int }

// Size returns the sum.
func (t *Total) Size() int { return t.size }

// Add adds a pattern's Size, or that of several; its error is ErrTooMany.
func (t *Total) Add(size int) error {
	if t.size += size; t.size > MaxTotal {
		return ErrTooMany
	}
	return nil
}

// Compile compiles a pattern and adds its Size. A refused pattern adds what it took to parse, so a
// document full of them costs no more than one that is accepted. Nothing is compiled once the
// error is ErrTooMany.
func (t *Total) Compile(source string, compile func(string) (*Pattern, error)) (*Pattern, error) {
	if t.size > MaxTotal {
		return nil, ErrTooMany
	}
	p, err := compile(source)
	size := len(source) + parsingOf(source)
	if err == nil {
		size = p.Size()
	}
	if full := t.Add(size); full != nil {
		return nil, full
	}
	return p, err
}
