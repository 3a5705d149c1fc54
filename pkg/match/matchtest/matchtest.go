// Package matchtest makes products as in catalogues and rows as shops write them, for tests and the
// bench. The same number makes the same product.
package matchtest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"shoal.dev/shoal/pkg/match"
)

// Catalogue makes products.
type Catalogue struct{ seed uint64 }

// New makes a catalogue. Another seed makes other products.
func New(seed uint64) Catalogue { return Catalogue{seed: seed} }

// Product returns the product with a number. Each 4 consecutive numbers are variants of one model:
// they differ in colour, size or count.
func (c Catalogue) Product(n int) (id string, p match.Product) {
	m := c.thing(n)
	p = match.Product{Brand: m.brand, Model: m.code, Title: m.title(" ", m.size, m.pack)}
	if m.number != "" {
		p.Numbers = []string{m.number}
	}
	return fmt.Sprintf("P%07d", n), p
}

// Row returns a product as a shop writes it. Words are left out, moved and misspelt, and units
// differ. The trade number or model is often missing.
func (c Catalogue) Row(n int) match.Product {
	m := c.thing(n)
	r := rand.New(rand.NewPCG(c.seed^0x5bd1e995, uint64(n)))
	size, pack := m.otherSize, m.pack
	if r.IntN(2) == 0 {
		size = m.size
	}
	words := strings.Fields(m.title(" ", "", ""))
	for i := len(words) - 1; i > 1; i-- {
		switch r.IntN(12) {
		case 0:
			words = append(words[:i], words[i+1:]...)
		case 1:
			words[i] = misspelt(r, words[i])
		case 2:
			words[i], words[i-1] = words[i-1], words[i]
		}
	}
	p := match.Product{Title: strings.ToUpper(strings.Join(words, " ")) + " " + size + pack}
	if r.IntN(2) == 0 {
		p.Title += " " + []string{"buy online", "NEU", "livraison gratuite"}[r.IntN(3)]
	}
	if r.IntN(10) < 3 && m.number != "" {
		p.Numbers = []string{m.number}
	}
	if r.IntN(10) < 5 && m.code != "" {
		p.Title += " " + strings.ReplaceAll(m.code, "-", "")
	}
	if r.IntN(2) == 0 {
		p.Brand = strings.ToUpper(m.brand)
	}
	return p
}

// thing is a product before it is written down.
type thing struct {
	brand, code, number   string
	words                 []string
	colour                string
	size, otherSize, pack string
}

func (m *thing) title(between, size, pack string) string {
	parts := append([]string{m.brand}, m.words...)
	if m.colour != "" {
		parts = append(parts, m.colour)
	}
	return strings.TrimSpace(strings.Join(parts, between) + between + size + pack)
}

// variants is the number of products per model.
const variants = 4

func (c Catalogue) thing(n int) *thing {
	model := n / variants
	r := rand.New(rand.NewPCG(c.seed, uint64(model)))
	own := rand.New(rand.NewPCG(c.seed+1, uint64(n)))
	m := &thing{brand: name(skewed(r, 8_000), 0x9e37)}
	m.words = append(m.words, name(skewed(r, 1_500), 0x79b9))
	for range 1 + r.IntN(4) {
		m.words = append(m.words, name(skewed(r, 60_000), 0x85eb))
	}
	if r.IntN(3) > 0 {
		m.code = fmt.Sprintf("%c%c-%d%c", 'A'+r.IntN(26), 'A'+r.IntN(26), 100+r.IntN(900_000),
			'A'+n%variants)
	}
	if r.IntN(2) == 0 {
		m.colour = colours[(r.IntN(len(colours))+n)%len(colours)]
	}
	m.measure(r.IntN(4), 1+(r.IntN(20)+n)%24)
	if own.IntN(10) < 7 {
		m.number = number(4_000_000_000_00 + uint64(n))
	}
	return m
}

var colours = []string{"black", "white", "red", "blue", "green", "silver", "grey", "pink"}

// measure gives a product a size, written in two ways.
func (m *thing) measure(kind, of int) {
	switch kind {
	case 0:
		m.size, m.otherSize = fmt.Sprintf("%d ml", of*50), fmt.Sprintf("%.2f L", float64(of)/20)
		if of%3 == 0 {
			m.pack = ", pack of 6"
		}
	case 1:
		m.size, m.otherSize = fmt.Sprintf("%d g", of*125), fmt.Sprintf("%.3f kg", float64(of)/8)
	case 2:
		m.size, m.otherSize = fmt.Sprintf("%dGB", 16<<(of%6)), fmt.Sprintf("%d GB", 16<<(of%6))
	default:
		m.size, m.otherSize = fmt.Sprintf("%d cm", of*5), fmt.Sprintf("%dmm", of*50)
	}
}

// skewed returns a number below most, small ones more often.
func skewed(r *rand.Rand, most int) int {
	share := r.Float64()
	return int(share * share * share * float64(most))
}

// name returns a different word for each number.
func name(n int, salt uint64) string {
	r := rand.New(rand.NewPCG(salt, uint64(n)))
	var b strings.Builder
	for range 2 + r.IntN(3) {
		b.WriteByte("bcdfghklmnprstvz"[r.IntN(16)])
		b.WriteByte("aeiou"[r.IntN(5)])
	}
	b.WriteByte("lmnrstk"[n%7])
	return b.String()
}

func misspelt(r *rand.Rand, word string) string {
	if len(word) < 4 {
		return word
	}
	i := 1 + r.IntN(len(word)-2)
	return word[:i] + word[i+1:]
}

// number returns twelve digits with the check digit of a GTIN.
func number(value uint64) string {
	digits, sum := fmt.Sprintf("%012d", value), 0
	for i := range digits {
		sum += int(digits[i]-'0') * (1 + 2*(i%2))
	}
	return digits + string(rune('0'+(10-sum%10)%10))
}
