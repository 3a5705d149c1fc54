package measure

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/match"
)

// pair is two products and whether people consider them the same.
type pair struct {
	left, right match.Product
	same        bool
}

// judgePairs judges the matcher with the sets of pairs in a directory. It uses the test files,
// which nothing was tuned on.
func judgePairs(dir string, report *Report) error {
	tests, err := filepath.Glob(filepath.Join(dir, "*", "test.txt"))
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if len(tests) == 0 {
		return fmt.Errorf("bench: %s: %w", dir, errPairs)
	}
	table := report.table("Public pairs that nothing was tuned on:", "set", "pairs", "of one product",
		"precision, %", "recall, %", "F1, %")
	for _, test := range tests {
		set := filepath.Dir(test)
		var all []pair
		files, err := filepath.Glob(filepath.Join(set, "*.txt"))
		if err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		for _, file := range files {
			pairs, err := readPairs(file)
			if err != nil {
				return err
			}
			all = append(all, pairs...)
		}
		pairs, err := readPairs(test)
		if err != nil {
			return err
		}
		finder, err := finderOf(all)
		if err != nil {
			return err
		}
		var right, wrong, missed float64
		for i := range pairs {
			score, _ := finder.Score(&pairs[i].left, &pairs[i].right)
			taken := score >= match.Threshold
			right += one(taken && pairs[i].same)
			wrong += one(taken && !pairs[i].same)
			missed += one(!taken && pairs[i].same)
		}
		table.add(filepath.Base(set), float64(len(pairs)), right+missed,
			percent(right, right+wrong), percent(right, right+missed),
			percent(2*right, 2*right+wrong+missed))
	}
	return nil
}

// finderOf makes a catalogue of the right-hand products, which decides which words are rare.
func finderOf(pairs []pair) (*match.Finder, error) {
	var b match.Builder
	known := map[string]bool{}
	for i := range pairs {
		p := &pairs[i].right
		key := strings.Join([]string{p.Brand, p.Model, p.Title}, "\x00")
		if known[key] {
			continue
		}
		known[key] = true
		if err := b.Add(strconv.Itoa(len(known)), p); err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
	}
	index, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return index.Finder(), nil
}

// readPairs reads lines of two products and a label, in the format of the sets' publishers.
func readPairs(path string) ([]pair, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer func() { _ = file.Close() }() // it was read
	var pairs []pair
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		parts := strings.Split(lines.Text(), "\t")
		if len(parts) != 3 {
			return nil, fmt.Errorf("bench: %s: line %d: %w", path, len(pairs)+1, errPairs)
		}
		pairs = append(pairs, pair{left: productOf(parts[0]), right: productOf(parts[1]),
			same: parts[2] == "1"})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("bench: %s: %w", path, err)
	}
	return pairs, nil
}

// productOf parses "COL name VAL text COL …".
func productOf(text string) match.Product {
	cells := map[string]string{}
	var columns []string
	for part := range strings.SplitSeq(text, "COL ") {
		if name, value, ok := strings.Cut(part, " VAL "); ok {
			name = strings.TrimSpace(name)
			cells[name], columns = strings.TrimSpace(value), append(columns, name)
		}
	}
	return match.ColumnsOf(columns).Product(func(column string) string { return cells[column] })
}
