package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

var portalUpdate = flag.Bool("portal-update", false, "keep the pictures of the portal as goldens")

// Pictures are kept small: the average of a block of pixels shows whether the page is there, in its
// colors. Ink is what is not ground. Most of a page is ground, so only ink is compared, by cells of
// blocks: letters and times may differ.
const (
	pictureBlock = 4           // pixels per side that become one of the golden
	pictureGrays = 15          // shades in a picture, black included
	pictureCell  = 8           // blocks per side whose ink is compared as one
	pictureMost  = 0.3         // share of the ink that may differ
	pictureTall  = int64(6000) // pixels
)

// shows compares a whole page with its goldens, light and dark, wide and narrow. It checks the
// contrast, and everything that axe-core does.
func (p *person) shows(name string) {
	p.t.Helper()
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			p.do(chromedp.EmulateViewport(width, 844))
			p.prefers(scheme)
			for range 3 { // some parts grow with the window
				tall := asks[int64](p, `Math.ceil(document.documentElement.scrollHeight)`)
				p.do(chromedp.EmulateViewport(width, min(max(tall, 844), pictureTall)))
			}
			asks[bool](p, `(scrollTo(0, 0), true)`) // the last click may have scrolled down
			p.sees(`[...document.querySelectorAll("nav a[aria-current]")].every((link) => {
				const at = link.getBoundingClientRect();
				return at.left >= 0 && at.right <= innerWidth; })`)
			if tall := asks[float64](p, `document.querySelector(".bar")?.offsetHeight ?? 0`); tall >
				100 {
				p.t.Errorf("the head of %s is %.0f tall: it has more than two lines", name, tall)
			}
			if wide := asks[int64](p, `document.documentElement.scrollWidth`); wide > width {
				p.t.Errorf("%s is %d wide where %d can be seen", name, wide, width)
			}
			picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				p.t.Fatal(err)
			}
			p.compare(fmt.Sprintf("%s-%d-%s.png", name, width, scheme), picture)
			as := fmt.Sprintf("%s, %d wide, %s", name, width, scheme)
			p.reads(as)
			p.judge(as)
		}
	}
	p.do(chromedp.EmulateViewport(1280, 900))
}

// compare compares a picture with its golden, as far as both reach.
func (p *person) compare(name string, picture []byte) {
	p.t.Helper()
	if *portalShots != "" {
		if err := os.WriteFile(filepath.Join(*portalShots, name), picture, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		p.t.Fatal(err)
	}
	small, path := shrink(decoded), filepath.Join("testdata", "portal", name)
	if *portalUpdate {
		var out bytes.Buffer
		if err := png.Encode(&out, small); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	golden := readPicture(p.t, path)
	if part := differ(golden, small); part > pictureMost {
		p.t.Errorf("%s is another picture in %.0f %% of its ink: look at it (-portal-shots), "+
			"then keep it with -portal-update", name, part*100)
	}
}

// shrink reduces a picture to gray blocks.
func shrink(of image.Image) *image.Paletted {
	var grays color.Palette
	for i := range pictureGrays {
		grays = append(grays, color.Gray{Y: uint8(i * 255 / (pictureGrays - 1))})
	}
	full := image.NewGray(of.Bounds())
	draw.Draw(full, full.Bounds(), of, of.Bounds().Min, draw.Src)
	size := full.Bounds().Size().Div(pictureBlock)
	small := image.NewPaletted(image.Rectangle{Max: size}, grays)
	for y := range size.Y {
		for x := range size.X {
			sum := 0
			for i := range pictureBlock * pictureBlock {
				sum += int(full.GrayAt(x*pictureBlock+i%pictureBlock,
					y*pictureBlock+i/pictureBlock).Y)
			}
			mean := sum / (pictureBlock * pictureBlock)
			small.SetColorIndex(x, y, uint8((mean*(pictureGrays-1)+127)/255))
		}
	}
	return small
}

// differ returns which share of two pictures' ink differs. What one has beyond the other counts
// half: lists vary in length.
func differ(golden image.Image, now *image.Paletted) float64 {
	kept, ok := golden.(*image.Paletted)
	if !ok || kept.Rect.Dx() != now.Rect.Dx() {
		return 1
	}
	base := ground(kept) // of both: another ground is ink
	a, b := inkOf(kept, base), inkOf(now, base)
	both, other, all := min(len(a), len(b)), 0.0, 0.0
	for i := range both {
		other += max(a[i], b[i]) - min(a[i], b[i])
		all += max(a[i], b[i])
	}
	for _, ink := range slices.Concat(a[both:], b[both:]) { // one of them is empty
		other += ink / 2
		all += ink
	}
	return other / max(all, 1)
}

// ground returns the shade that most of a picture has.
func ground(of *image.Paletted) uint8 {
	var blocks [pictureGrays]int
	for _, shade := range of.Pix {
		blocks[shade]++
	}
	return uint8(slices.Index(blocks[:], slices.Max(blocks[:])))
}

// inkOf returns the ink of each cell on a ground, row by row.
func inkOf(of *image.Paletted, ground uint8) []float64 {
	size, base := of.Rect.Size(), int(ground)
	wide := (size.X + pictureCell - 1) / pictureCell
	cells := make([]float64, wide*((size.Y+pictureCell-1)/pictureCell))
	for y := range size.Y {
		for x := range size.X {
			d := int(of.ColorIndexAt(x, y)) - base
			cells[y/pictureCell*wide+x/pictureCell] += float64(max(d, -d))
		}
	}
	return cells
}

// TestGoldensSeeAnEmptyPage: below its head, each golden has enough ink to miss it.
func TestGoldensSeeAnEmptyPage(t *testing.T) {
	t.Parallel()
	const head = 100 / pictureBlock
	paths, err := filepath.Glob(filepath.Join("testdata", "portal", "*.png"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d goldens, %v", len(paths), err)
	}
	for _, path := range paths {
		golden, ok := readPicture(t, path).(*image.Paletted)
		if !ok {
			t.Fatalf("%s has no palette", path)
		}
		empty := image.NewPaletted(golden.Rect, golden.Palette)
		head := head * golden.Stride
		copy(empty.Pix, golden.Pix[:head])
		copy(empty.Pix[head:], bytes.Repeat([]byte{ground(golden)}, len(empty.Pix)-head))
		if part := differ(golden, empty); part <= pictureMost {
			t.Errorf("%s passes when it is empty: %.3f of its ink is missed", path, part)
		}
	}
}

// readPicture reads a file.
func readPicture(t *testing.T, path string) image.Image {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // read-only
	picture, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	return picture
}

// TestPicturesDiffer: another picture is told apart from the same one with other letters.
func TestPicturesDiffer(t *testing.T) {
	page := func(letters, box int, ground uint8) *image.Paletted {
		of := image.NewGray(image.Rect(0, 0, 400, 400))
		draw.Draw(of, of.Bounds(), image.NewUniform(color.Gray{Y: ground}), image.Point{}, draw.Src)
		black := image.NewUniform(color.Gray{})
		draw.Draw(of, image.Rect(20, 20, 20+letters, 30), black, image.Point{}, draw.Src)
		draw.Draw(of, image.Rect(20, 100, 20+box, 100+box), black, image.Point{}, draw.Src)
		return shrink(of)
	}
	golden := page(60, 100, 255)
	for _, c := range []struct {
		now  *image.Paletted
		same bool
	}{{golden, true}, {page(90, 100, 255), true}, {page(60, 200, 255), false},
		{page(60, 0, 255), false}, {page(60, 100, 20), false}} {
		if got := differ(golden, c.now); got <= pictureMost != c.same {
			t.Errorf("%.3f of it differs, the same: %v", got, c.same)
		}
	}
}
