package curl

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// bashWords parses one simple command like bash, without files, variables and other programs.
func bashWords(command string) ([]string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command),
		"")
	if err != nil {
		return nil, invalid("the shell cannot read the command: %v", err)
	}
	if len(file.Stmts) == 0 {
		return nil, nil
	}
	if len(file.Stmts) > 1 {
		return nil, invalid("exactly one command is needed; an address that holds & or ; " +
			"must be quoted")
	}
	stmt := file.Stmts[0]
	call, simple := stmt.Cmd.(*syntax.CallExpr)
	switch {
	case stmt.Background:
		return nil, invalid("exactly one command is needed; an address that holds & must be quoted")
	case len(stmt.Redirs) > 0:
		return nil, invalid("redirections (<, >) are not allowed; what holds such a sign " +
			"must be quoted")
	case !simple || stmt.Negated || stmt.Coprocess:
		return nil, invalid("only a single curl command is allowed, without pipes, conditions " +
			"and the like")
	case len(call.Assigns) > 0:
		return nil, invalid("variables are not allowed before the command")
	case len(call.Args) > maxWords:
		return nil, invalid("a curl command has at most %d words", maxWords)
	}
	words := make([]string, len(call.Args))
	for i, arg := range call.Args {
		if words[i], err = bashWord(arg); err != nil {
			return nil, err
		}
	}
	return words, nil
}

// bashWord returns the value of a word that needs nothing from outside.
func bashWord(word *syntax.Word) (string, error) {
	var out strings.Builder
	if err := noBraces(word); err != nil {
		return "", err
	}
	for i, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if i == 0 && strings.HasPrefix(part.Value, "~") {
				return "", invalid("a word that begins with ~ stands for a folder; quote it")
			}
			out.WriteString(unescaped(part.Value, ""))
		case *syntax.SglQuoted:
			if !part.Dollar {
				out.WriteString(part.Value)
				continue
			}
			value, err := ansiC(part.Value)
			if err != nil {
				return "", err
			}
			out.WriteString(value)
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return "", expansion(inner)
				}
				out.WriteString(unescaped(lit.Value, "$`\"\\"))
			}
		default:
			return "", expansion(part)
		}
	}
	return out.String(), nil
}

// noBraces refuses words that bash would expand to several, such as {a,b}.
func noBraces(word *syntax.Word) error {
	copied := *word
	copied.Parts = append([]syntax.WordPart(nil), word.Parts...)
	syntax.SplitBraces(&copied)
	for _, part := range copied.Parts {
		if _, several := part.(*syntax.BraceExp); several {
			return invalid("braces such as {a,b} stand for several words; quote them")
		}
	}
	return nil
}

func expansion(part syntax.WordPart) error {
	what := "an expansion"
	switch part.(type) {
	case *syntax.ParamExp:
		what = "a variable ($…)"
	case *syntax.CmdSubst:
		what = "another command ($(…) or `…`)"
	case *syntax.ArithmExp:
		what = "a calculation ($((…)))"
	case *syntax.ProcSubst:
		what = "another command (<(…))"
	}
	return invalid("%s in the command is not allowed: write out what it stands for, in "+
		"single quotes", what)
}

// unescaped removes backslashes before characters of set, or before any if set is empty.
func unescaped(text, set string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			next := text[i+1]
			if next == '\n' {
				i++
				continue
			}
			if set == "" || strings.IndexByte(set, next) >= 0 {
				i++
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// ansiC decodes the text between $' and '. Two escapes \uD83D\uDE00 that form one character are
// joined, as browsers mean them.
func ansiC(text string) (string, error) {
	var out []byte
	for i := 0; i < len(text); {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			i++
			continue
		}
		kind := text[i+1]
		i += 2
		if at := strings.IndexByte(`abeEfnrtv\'"?`, kind); at >= 0 {
			out = append(out, "\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[at])
			continue
		}
		var size int
		base := 16
		switch {
		case kind == 'x':
			size = 2
		case kind == 'u':
			size = 4
		case kind == 'U':
			size = 8
		case kind >= '0' && kind <= '7':
			i, size, base = i-1, 3, 8
		case kind == 'c' && i < len(text):
			out = append(out, text[i]&0x1f)
			i++
			continue
		default:
			out = append(out, '\\', kind)
			continue
		}
		code, read := number(text[i:], size, base)
		if read == 0 {
			out = append(out, '\\', kind)
			continue
		}
		i += read
		if kind != 'u' && kind != 'U' {
			out = append(out, byte(code))
			continue
		}
		if rest, ok := strings.CutPrefix(text[i:], `\u`); ok && utf16.IsSurrogate(rune(code)) {
			low, read := number(rest, 4, 16)
			if joined := utf16.DecodeRune(rune(code), rune(low)); joined != utf8.RuneError {
				code, i = uint64(joined), i+2+read
			}
		}
		out = utf8.AppendRune(out, rune(code))
	}
	if strings.IndexByte(string(out), 0) >= 0 {
		return "", invalid("a zero byte in the command is not allowed")
	}
	return string(out), nil
}

// number parses at most size digits.
func number(text string, size, base int) (value uint64, read int) {
	for read < min(size, len(text)) {
		next, err := strconv.ParseUint(text[read:read+1], base, 8)
		if err != nil {
			break
		}
		value, read = value*uint64(base)+next, read+1
	}
	return value, read
}
