package contacts

import (
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/wordset"
)

// effectOf returns the effect of lower-case declarations. Transparent text (opacity:0) counts as
// visible, because pages fade it in.
func effectOf(declarations string) effect {
	if !containsAny(declarations, []string{"display", "visibility", "font-size", "-", "bidi",
		"clip", "scale", "width"}) {
		return 0
	}
	var done effect
	moved, far, bidi, rtl, flat, cut := false, false, false, false, false, false
	clipped, narrow, low := false, false, false
	for declaration := range strings.SplitSeq(declarations, ";") {
		name, value, _ := strings.Cut(declaration, ":")
		value = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "!important"))
		name = strings.TrimSpace(name)
		if chosen[name] && strings.Contains(value, "var(") {
			done |= veils
			continue
		}
		switch name {
		case "display":
			done = done&^(hides|shows) | either(value == "none", hides, shows)
		case "clip-path":
			clipped = clipped || strings.HasPrefix(value, "inset(100%") ||
				strings.HasPrefix(value, "inset(50%") || strings.HasPrefix(value, "circle(0)")
		case "clip":
			done |= either(clipsAll(value), veils, 0)
		case "width", "inline-size", "max-width":
			narrow = isTiny(value)
		case "height", "block-size":
			low = isTiny(value)
		case "transform", "scale":
			done |= either(shrinks(name, value), veils, 0)
		case "visibility":
			done |= either(value == "hidden" || value == "collapse", hides, shows)
		case "font-size":
			done |= either(strings.Trim(value, "0.pxem") == "" && strings.HasPrefix(value, "0"),
				hides, 0)
		case "max-height":
			flat = strings.HasPrefix(value, "0") && strings.Trim(value, "0.pxem%") == ""
		case "overflow":
			cut = value == "hidden" || value == "clip"
		case "position":
			moved = value == "absolute" || value == "fixed"
		case "left", "right", "top", "bottom", "inset-inline-start", "margin-left", "margin-top":
			far = far || isFar(value)
		case "text-indent":
			done |= either(isFar(value), hides, 0)
		case "unicode-bidi":
			bidi = strings.Contains(value, "override")
		case "direction":
			rtl = value == "rtl"
		}
	}
	switch {
	case moved && far || flat && cut || clipped && !moved:
		done |= hides
	case clipped || narrow && low && cut:
		done |= veils
	}
	if bidi && rtl {
		done |= reverses
	}
	if done&hides != 0 {
		done &^= shows
	}
	return done
}

// chosen are properties that hide a text by some of their values. A variable may have any.
var chosen = wordset.Of("display visibility font-size")

// isTiny says whether a length is nothing, or the pixel that is left to texts for listeners.
func isTiny(value string) bool {
	return value == "1px" || strings.HasPrefix(value, "0") && strings.Trim(value, "0.pxrem%") == ""
}

// clipsAll says whether a value of clip leaves no more than a pixel.
func clipsAll(value string) bool {
	sides, isRect := strings.CutPrefix(strings.TrimSuffix(value, ")"), "rect(")
	return isRect && !slices.ContainsFunc(strings.FieldsFunc(sides,
		func(r rune) bool { return r == ',' || r == ' ' }),
		func(side string) bool { return !isTiny(side) })
}

// shrinks says whether a value of transform or scale makes a text a point.
func shrinks(name, value string) bool {
	if name == "scale" {
		return isTiny(value) && value != "1px"
	}
	value = strings.ReplaceAll(value, " ", "")
	return containsAny(value, []string{"scale(0)", "scale(0,", "scalex(0)", "scaley(0)",
		"scale3d(0,"})
}

func either(first bool, a, b effect) effect {
	if first {
		return a
	}
	return b
}

// isFar says whether a negative length of three digits or more moves text off the screen.
func isFar(value string) bool {
	digits, negative := strings.CutPrefix(value, "-")
	return negative && len(digits) >= 3 && strings.Trim(digits[:3], "0123456789") == ""
}
