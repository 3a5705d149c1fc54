package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/price"
)

// Euros formats micros exactly, with two to six decimals.
func Euros(micros int64) string {
	sign, amount := "", uint64(micros)
	if micros < 0 {
		sign, amount = "-", -amount
	}
	decimals := strings.TrimRight(fmt.Sprintf("%06d", amount%price.MicrosPerEUR), "0")
	for len(decimals) < 2 {
		decimals += "0"
	}
	euros := grouped(strconv.FormatUint(amount/price.MicrosPerEUR, 10))
	return sign + euros + "." + decimals + " EUR"
}

// Count formats a number with thousands separators.
func Count(n int64) string {
	if n < 0 {
		return "-" + grouped(strconv.FormatUint(-uint64(n), 10))
	}
	return grouped(strconv.FormatInt(n, 10))
}

func grouped(digits string) string {
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// Plural formats a count and its noun, whose plural ends with s.
func Plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Lasted formats a duration of whole milliseconds for people.
func Lasted(millis int64) string {
	d := time.Duration(millis) * time.Millisecond
	if d < time.Minute {
		return fmt.Sprintf("%d.%d s", millis/1000, millis%1000/100)
	}
	return d.Round(time.Second).String()
}

// Printable makes foreign text safe for a terminal: it replaces non-graphic characters with spaces.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, text)
}

// Bounds of a table, in characters.
const (
	WidestCell  = 48
	columnSpace = 2
)

// PrintTable writes a header and rows in columns.
func PrintTable(w io.Writer, header []string, rows [][]string) error {
	return printColumns(w, append([][]string{slices.Clone(header)}, rows...))
}

// PrintPairs writes names and values, and skips empty values.
func PrintPairs(w io.Writer, pairs [][]string) error {
	return printColumns(w, slices.DeleteFunc(pairs,
		func(pair []string) bool { return pair[1] == "" }))
}

// printColumns writes rows with the same number of cells in columns as wide as their widest cell.
// It cuts all but the last column at WidestCell. Cells are made printable.
func printColumns(w io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i := range row {
			row[i] = strings.Join(strings.Fields(Printable(row[i])), " ")
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], min(utf8.RuneCountInString(row[i]), WidestCell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i < len(row)-1 {
				cell = Cut(cell, widths[i])
			}
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ",
				max(widths[i]-utf8.RuneCountInString(cell), 0)+columnSpace))
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// Cut shortens text to a number of characters, the last of which becomes '…'.
func Cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(width-1, 0)]) + "…"
}

// PrintJSON writes a value as indented JSON.
func PrintJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// Moment shortens an ISO 8601 time to seconds, in UTC; other text stays unchanged.
func Moment(iso string) string {
	at, err := time.Parse(time.RFC3339, iso)
	if err != nil {
		return iso
	}
	return at.UTC().Format("2006-01-02 15:04:05")
}
