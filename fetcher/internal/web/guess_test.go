package web

import (
	"strings"
	"testing"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/transform"
)

// written are page texts with their encodings.
var written = []struct{ encoding, text string }{
	{"windows-1251", "Кофемашина автоматическая, чёрная. Цена: 45 990 руб. В наличии на складе. " +
		"Доставка по всей России бесплатно."},
	{"windows-1251", "Интернет-магазин «Чайник» — лучшие цены на бытовую технику в Киеве"},
	{"windows-1251", "Електрически чайник, неръждаема стомана, гаранция две години"},
	{"windows-1251", "Цена"}, {"windows-1251", "Магазин"}, {"windows-1251", "Київ"},
	{"windows-1251", "Чай"}, {"windows-1251", "Мёд"}, {"windows-1251", "Войти"},
	{"windows-1251", "Размер: XL"}, {"windows-1251", "Отзывы и акции"},
	{"koi8-r", "Цена"}, {"koi8-r", "Контакты"}, {"koi8-r", "Цена: 45 руб."},
	{"koi8-r", "Кофемашина автоматическая, чёрная. В наличии на складе, доставка по всей России"},
	{"windows-1253", "Καφετιέρα φίλτρου με μόνωση, μαύρη. Τιμή με ΦΠΑ, διαθέσιμο στο κατάστημα"},
	{"windows-1253", "Προϊόντα"}, {"windows-1255", "מחיר"}, {"windows-874", "ราคา"},
	{"gbk", "价格"}, {"gbk", "购物车"}, {"euc-kr", "가격"}, {"windows-1252", "Größe"},
	{"windows-1252", "Société créée"},
	{"windows-1255", "מכונת קפה אוטומטית, צבע שחור. משלוח חינם לכל הארץ, זמין במלאי"},
	{"windows-1256", "ماكينة القهوة الأوتوماتيكية باللون الأسود متوفرة في المخزن مع توصيل مجاني"},
	{"windows-874", "เครื่องชงกาแฟอัตโนมัติ สีดำ ราคาพิเศษ จัดส่งฟรีทั่วประเทศ มีสินค้าพร้อมส่ง"},
	{"shift_jis", "全自動コーヒーマシン ブラック 価格:45,990円(税込) 送料無料 在庫あり。カートに入れる"},
	{"shift_jis", "これは日本語で書かれた商品の説明です。お気に入りに追加してください。"},
	{"euc-jp", "全自動コーヒーマシン ブラック 価格:45,990円(税込) 送料無料 在庫あり。カートに入れる"},
	{"gbk", "首页 全自动咖啡机 黑色 价格：3999元 加入购物车 正品保证 七天无理由退货"},
	{"gbk", "这是一款家用的全自动咖啡机，可以在一分钟之内做出一杯好咖啡。"},
	{"big5", "首頁 全自動咖啡機 黑色 價格：3999元 加入購物車 免運費 七天鑑賞期"},
	{"euc-kr", "전자동 커피머신 블랙 가격 459,900원 무료배송 재고 있음. 장바구니에 담기"},
	{"iso-8859-5",
		"Кофемашина автоматическая, чёрная. В наличии на складе, доставка по всей России"},
	{"x-mac-cyrillic", "Кофемашина автоматическая, чёрная. Доставка по всей России. " +
		"Электрические чайники"},
	{"iso-8859-6", "ماكينة القهوة الأوتوماتيكية باللون الأسود متوفرة في المخزن مع توصيل مجاني"},
	{"windows-1250", "Automatický kávovar, černý. Příkon 1450 W, záruka dva roky, skladem – " +
		"doprava zdarma"},
	{"windows-1250", "Ekspres do kawy, czarny. Możliwość zwrotu w ciągu 30 dni, wysyłka w 24 " +
		"godziny. Są też części"},
	{"windows-1250", "Automata kávéfőző, fekete. Kétéves garancia, ingyenes szállítás, " +
		"elérhető a boltokban"},
	{"windows-1250", "Automatický kávovar, čierny. Ľahké čistenie, dvojročná záruka, tovar je " +
		"na sklade – už zajtra u vás"},
	{"windows-1250", "Aparat za kavu, crni. Jamstvo dvije godine, besplatna dostava širom " +
		"Hrvatske, može se preuzeti već sutra"},
	{"windows-1250", "Espressor automat, culoare neagră. Garanţie doi ani, livrare gratuită în " +
		"toată ţara şi preţ redus"},
	{"iso-8859-2", "Automatický kávovar, černý. Příkon 1450 W, záruka dva roky, už skladem, " +
		"šálek zdarma"},
	{"iso-8859-2", "Ekspres do kawy, czarny. Możliwość zwrotu w ciągu 30 dni, wysyłka w 24 " +
		"godziny. Są też części"},
	{"iso-8859-2", "Aparat za kavu, crni. Jamstvo dvije godine, besplatna dostava širom " +
		"Hrvatske, može se preuzeti već sutra"},
	{"windows-1254", "Tam otomatik kahve makinesi, siyah. İki yıl garanti, ücretsiz kargo, " +
		"mağazalarımızda satışta"},
	{"windows-1257", "Kavos aparatas, juodas. Dvejų metų garantija, nemokamas pristatymas visoje " +
		"Lietuvoje, prekė sandėlyje"},
	{"windows-1257", "Kafijas automāts, melns. Divu gadu garantija, bezmaksas piegāde visā " +
		"Latvijā, prece ir noliktavā"},
	{"windows-1257", "Kaina su PVM, į krepšelį įdėta prekė, šiandien jūsų namuose"},
	{"iso-8859-15", "Cafetière à filtre, cœur de bœuf, 12,99 € TTC. Déjà livrée à l'étranger"},
	{"iso-8859-15", "Preis 45 €, größer"},
	{"windows-1252", "½ litre, 10 ½ heures de plaisir; 1½ cups"},
	{"windows-1252", "Sjálfvirk kaffivél, svört. Tveggja ára ábyrgð, frí heimsending, til í " +
		"verslunum og það strax á morgun"},
	{"windows-1252", "Coffee machine, was £825, now £ 799 or 2 × £410. Volume 0.3 m³, 5 m³ and " +
		"7 m³. © 2024 Nestlé® BOSCH® KRUPS®"},
	{"windows-1252", "Warranty¹ of 2 years², ±5 µm³ and 1¾ cups at 90°. See terms¹, prices¹ and " +
		"Café¹. Nº 5, Nº 7, Nº 9; 1ª, 2º"},
	{"windows-1252", "¡Oferta! ¡Compra ya! ¿Dónde? ¡Últimas unidades! Habitación de 30 m³, camión"},
	{"windows-1252", "Fête des mères: une pièce à 3 € en forêt, déjà prête, même ailleurs. Crêpes"},
	{"windows-1252", "Cafeteira automática, não inclui café. Promoções até amanhã, vários " +
		"padrões de tensão; opções à vista"},
	{"windows-1252", "Täisautomaatne kohvimasin, must. Kõik tooted on laos, õhtul kohale, " +
		"tasuta saatmine üle Eesti"},
	{"windows-1252", "Cafetière entièrement automatique, créée à Genève. Déjà livrée à " +
		"l'étranger où ça plaît"},
	{"windows-1252", "Größe: süß; Maße über 30 × 40 cm; heiß, öffnen, äußerst schön – 45,99 €"},
	{"windows-1252", "Máquina de café automática: años de garantía, envíos rápidos, ¿qué " +
		"más? Corazón"},
	{"windows-1252", "Fullautomatisk kaffemaskin, på lager, även i blått. Köp nu för 3 999 kr"},
}

// Text without a declared encoding is guessed from its characters, also in the middle of a page of
// ASCII.
func TestGuess(t *testing.T) {
	for _, w := range written {
		e, name := charset.Lookup(w.encoding)
		encoded, _, err := transform.String(e.NewEncoder(), w.text)
		if err != nil {
			t.Fatal(w.encoding, err)
		}
		page := func(text string) string {
			return "<!doctype html><script>" + strings.Repeat("x", 2000) + "</script><h1>" + text +
				"</h1><p>100 % Arabica"
		}
		got, err := toUTF8([]byte(page(encoded)), "text/html")
		if err != nil || string(got) != page(w.text) {
			_, read, _ := strings.Cut(string(got), "<h1>")
			t.Errorf("%s is read as %q, %v; want %q", name, read, err, w.text)
		}
	}
}

// A declaration after the first kilobyte counts, and a few broken bytes do not change the encoding
// of UTF-8.
func TestUndeclared(t *testing.T) {
	long := "<script>" + strings.Repeat("x", 2000) + "</script>"
	for name, test := range map[string]struct{ body, contentType, want string }{
		"late meta": {long + `<META CHARSET=iso-8859-2>` + "\xb1", "text/html",
			long + `<META CHARSET=iso-8859-2>ą`},
		"late meta of 1252": {long + `<meta charset="latin1">` + "\xcf\xf0\xee", "text/html",
			long + `<meta charset="latin1">Ïðî`},
		"late http-equiv": {long +
			`<meta content='text/html; charset=koi8-r' http-equiv=Content-Type>` + "\xc1",
			"text/html", long +
				`<meta content='text/html; charset=koi8-r' http-equiv=Content-Type>а`},
		"late, and broken": {long + `<meta charset="utf-8">é` + "\xff", "text/html",
			long + `<meta charset="utf-8">é` + "\ufffd"},
		"late utf-16": {long + `<meta charset="utf-16">é` + "\xff", "text/html",
			long + `<meta charset="utf-16">é` + "\ufffd"},
		"XML": {`<?xml version="1.0" encoding="windows-1251"?><a>` + "\xe0",
			"application/xhtml+xml", `<?xml version="1.0" encoding="windows-1251"?><a>а`},
		"header over late": {long + `<meta charset="koi8-r">` + "\xe9",
			"text/html; charset=iso-8859-1", long + `<meta charset="koi8-r">é`},
		"utf-8 with a slip": {long + "Größe: süß, über\xc3 äußerst schön", "text/html",
			long + "Größe: süß, über\ufffd äußerst schön"},
		"JSON cut in the word": {"{\"a\":\"Größe: süß, über äußerst schön" + "\xe2\x82\"}",
			"application/json", "{\"a\":\"Größe: süß, über äußerst schön\ufffd\"}"},
	} {
		got, err := toUTF8([]byte(test.body), test.contentType)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
}
