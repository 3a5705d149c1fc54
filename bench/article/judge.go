package article

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"shoal.dev/shoal/pkg/wordset"
)

// Schema is the JSON Schema that articles are read with; Judge knows its properties.
const Schema = `{"type":"object","properties":{"title":{"type":"string"},` +
	`"author":{"type":"string"},"datePublished":{"type":"string","format":"date"},` +
	`"articleBody":{"type":"string"}},"required":["title"]}`

// Judgement says which parts of a row are right. Any author is right if the page names none.
type Judgement struct{ Title, Author, Date, Text bool }

// Right says whether all parts are right.
func (j Judgement) Right() bool { return j.Title && j.Author && j.Date && j.Text }

const (
	// titleLike is how much of a title has to match, as F1 of its words. Pages have kickers before
	// their titles, and vary their titles for other sites.
	titleLike = 0.8
	// mostParts is how many parts of the text may be missing or extra. The parts were chosen where
	// errors happen, so one of six is much less than a sixth of the text.
	mostParts = 1
	// dayOff is how far a date may be off: pages state and show it in different time zones.
	dayOff = 24 * time.Hour
)

// Judge compares a row, a JSON object according to Schema, with the answer.
func (a *Answer) Judge(row []byte) Judgement {
	var got struct {
		Title, Author, DatePublished, ArticleBody string
	}
	if json.Unmarshal(row, &got) != nil {
		return Judgement{} // a row of another form has no article
	}
	return Judgement{Title: likeness(got.Title, a.Title) >= titleLike,
		Author: a.names(got.Author), Date: a.dated(got.DatePublished),
		Text: a.wrongParts(got.ArticleBody) <= mostParts}
}

// likeness is the F1 score of two texts' words.
func likeness(got, want string) float64 {
	left := map[string]int{}
	total, same := 0, 0
	for _, word := range words(want) {
		left[word]++
		total++
	}
	for _, word := range words(got) {
		total++
		if left[word] > 0 {
			left[word]--
			same++
		}
	}
	if total == 0 {
		return 0
	}
	return 2 * float64(same) / float64(total)
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// names says whether a text names one of the authors, or all of them, and nothing else.
func (a *Answer) names(author string) bool {
	if len(a.Authors) == 0 {
		return true
	}
	got := strings.Join(names(author), " ")
	all := strings.Join(names(strings.Join(a.Authors, " ")), " ")
	return got != "" && strings.Contains(" "+all+" ", " "+got+" ")
}

// joining are the words between the last two of several authors.
var joining = wordset.Of("and und et y e en og och i")

// names splits authors into the words of their names, without joining words.
func names(authors string) []string {
	return slices.DeleteFunc(words(authors), func(word string) bool { return joining[word] })
}

func (a *Answer) dated(date string) bool {
	if a.Date == "" {
		return date == ""
	}
	want, err := time.Parse(time.DateOnly, a.Date)
	if err != nil {
		return false
	}
	got, err := time.Parse(time.DateOnly, date)
	return err == nil && got.Sub(want).Abs() <= dayOff
}

// wrongParts counts the parts that a text lacks or should not have.
func (a *Answer) wrongParts(text string) (wrong int) {
	text = plain(text)
	for _, part := range a.With {
		if !strings.Contains(text, plain(part)) {
			wrong++
		}
	}
	for _, part := range a.Without {
		if strings.Contains(text, plain(part)) {
			wrong++
		}
	}
	return wrong
}

func plain(text string) string { return strings.Join(strings.Fields(text), " ") }
