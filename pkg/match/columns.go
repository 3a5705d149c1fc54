package match

import (
	"slices"
	"strings"
)

// Columns names the columns that describe a product; "": none.
type Columns struct {
	ID     string // the product's id in the catalogue
	Number string // its trade number
	Brand  string
	Model  string
	Title  string
}

// names are the names of these columns in several languages, folded and without signs. If a file
// has several, the first one here counts.
var names = [...][]string{
	strings.Fields(`id catalogueid catalogid productid articleid artikelid produktid productcode
		sku artikelnummer articlenumber`),
	strings.Fields(`gtin gtin13 gtin14 gtin12 gtin8 ean ean13 ean8 eancode upc upca barcode
		strichcode codebarre codebarres codigodebarras codicebarre isbn13 isbn isbn10`),
	strings.Fields(`brand brandname marke marque marca merk marka manufacturer hersteller fabricant
		fabricante produttore fabrikant producent vendor`),
	strings.Fields(`mpn model modelno modelnumber modelname modell modellnummer modele modelo modello
		partnumber partno manufacturerpartnumber herstellernummer herstellerartikelnummer
		referencia reference`),
	strings.Fields(`title name productname producttitle product titel bezeichnung produktname
		produktbezeichnung artikelname artikelbezeichnung nom titre nomproduit designation libelle
		nombre titulo producto denominacion nome titolo prodotto denominazione naam productnaam
		nazwa tytul`),
}

// ColumnsOf finds the columns that describe a product by their names.
func ColumnsOf(columns []string) Columns {
	var found [len(names)]string
	for i, known := range names {
		at := len(known)
		for _, column := range columns {
			place := slices.Index(known[:at], plainName(column))
			same := at < len(known) && plainName(column) == known[at]
			switch {
			case place >= 0:
				at, found[i] = place, column
			case same && column < found[i]:
				found[i] = column
			}
		}
	}
	return Columns{ID: found[0], Number: found[1], Brand: found[2], Model: found[3],
		Title: found[4]}
}

// plainName returns a column's name, folded, with only its letters and digits.
func plainName(column string) string {
	text := fold(nil, column)
	plain := text[:0]
	for _, c := range text {
		if c >= 'a' && c <= 'z' || isDigit(c) {
			plain = append(plain, c)
		}
	}
	return string(plain)
}

// Comparable reports whether the columns suffice to find a row's product.
func (c Columns) Comparable() bool { return c.Number != "" || c.Title != "" || c.Model != "" }

// Product returns a row's product. value returns a column's value, "": none.
func (c Columns) Product(value func(column string) string) Product {
	p := Product{}
	for _, part := range [...]struct {
		column string
		to     *string
	}{{c.Brand, &p.Brand}, {c.Model, &p.Model}, {c.Title, &p.Title}} {
		if part.column != "" {
			*part.to = value(part.column)
		}
	}
	if c.Number == "" {
		return p
	}
	if text := value(c.Number); text != "" {
		p.Numbers = strings.FieldsFunc(text, func(r rune) bool {
			return r == ',' || r == ';' || r == '|'
		})
	}
	return p
}
