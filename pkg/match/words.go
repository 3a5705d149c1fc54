package match

import (
	"strings"

	"shoal.dev/shoal/pkg/wordset"
)

// Words for packs, in several languages, folded.
var (
	packWords = wordset.Of(`pack packs pk packung packungen set sets bundle box boxes case cases
		multipack lot lots paquet paquets boite boites paquete paquetes caja cajas confezione
		confezioni scatola pak verpakking opakowanie pakiet pacote caixa kit`)
	// packCounts may stand right before the number.
	packCounts = wordset.Of("multipack pack paquet paquete confezione")
	countWords = wordset.Of(`pc pcs piece pieces count ct stuck stk st unit units unite unites
		unidades uds ud pieza piezas pezzi pz stuks szt sztuk unidade pieces`)
	ofWords = wordset.Of("of von mit a de da di van z")
)

// passedOver are words that distinguish no products.
var passedOver = wordset.Of(`the a an and or of for with in on to by from at as is it this that new
	und oder fur mit von der die das den dem ein eine im am zu neu aus
	le la les un une des du de et ou pour avec sur en dans au aux neuf
	el los las una y o para con por del al nuevo
	il lo gli e per con da di nel nuovo
	het een van voor met op en nieuw
	oraz dla do z na
	com um uma os as dos das para novo
	buy online price kaufen preis achat prix acheter comprar precio prezzo kopen prijs sale shop store
	free shipping versand livraison envio best deal`)

// same are words of several languages with the same meaning, by the word for all.
var same = sameWords(`
	black schwarz noir negro nero zwart czarny preto schwarze
	white weiss blanc blanco bianco wit bialy branco weisse blanche
	red rot rouge rojo rosso rood czerwony vermelho
	blue blau bleu azul blu blauw niebieski
	green grun vert verde groen zielony
	yellow gelb jaune amarillo giallo geel zolty amarelo
	grey gray grau gris grigio grijs szary cinza
	silver silber argent plata argento zilver srebrny prata
	gold or oro goud zloty ouro golden
	brown braun brun marron marrone bruin brazowy
	pink rosa rose roze rozowy
	orange naranja arancione oranje
	purple lila violet violett violeta viola paars fioletowy roxo
	beige creme
	wireless kabellos drahtlos inalambrico draadloos funk
	cable kabel cavo kable cabo
	printer drucker imprimante impresora stampante drukarka
	camera kamera camara fotocamera aparat
	watch uhr montre reloj orologio horloge zegarek relogio
	shoes schuhe chaussures zapatos scarpe schoenen buty sapatos shoe schuh
	men mens herren homme hommes hombre uomo heren meski
	women womens damen femme femmes mujer donna dames damski
	kids kinder enfant enfants ninos bambini kinderen
	battery akku batterie bateria batteria accu
	charger ladegerat chargeur cargador caricabatterie oplader
	screen bildschirm ecran pantalla schermo scherm ekran monitor display
	keyboard tastatur clavier teclado tastiera toetsenbord
	mouse maus souris raton muis
	headphones kopfhorer casque auriculares cuffie koptelefoon headphone
	bag tasche sac bolsa borsa tas torba
	coffee kaffee cafe caffe koffie kawa
	milk milch lait leche latte melk mleko
	water wasser eau agua acqua
	chocolate schokolade chocolat cioccolato chocolade czekolada
	cd cdrom dvd`)

// colours are the words of same that name a colour. Different colours mean different products.
var colours = wordset.Of(`black white red blue green yellow grey silver gold brown pink orange
	purple beige`)

// sameWords parses lists of words: one per line, beginning with the word for all.
func sameWords(lists string) map[string]string {
	words := map[string]string{}
	for line := range strings.SplitSeq(lists, "\n") {
		if of := strings.Fields(line); len(of) > 0 {
			for _, word := range of {
				words[word] = of[0]
			}
		}
	}
	return words
}
