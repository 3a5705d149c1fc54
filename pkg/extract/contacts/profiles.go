package contacts

import (
	"net/url"
	"strings"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/wordset"
)

// profileDomains are social networks, marketplaces and publishing platforms. A page there is a
// profile, not the business's own website.
var profileDomains = wordset.Of(`
facebook.com fb.com fb.me instagram.com threads.net threads.com linkedin.com xing.com twitter.com x.com tiktok.com youtube.com youtu.be
pinterest.com snapchat.com t.me telegram.me wa.me whatsapp.com vk.com ok.ru weibo.com reddit.com tumblr.com linktr.ee beacons.ai
behance.net dribbble.com soundcloud.com spotify.com twitch.tv discord.gg discord.com bsky.app mastodon.social flickr.com vimeo.com
nextdoor.com nextdoor.de meetup.com quora.com patreon.com onlyfans.com kununu.com stayfriends.de lnk.bio carrd.co
etsy.com aliexpress.com alibaba.com allegro.pl olx.pl olx.ua olx.ro olx.pt olx.bg vinted.com vinted.de vinted.fr kleinanzeigen.de
ebay-kleinanzeigen.de mobile.de autoscout24.de immobilienscout24.de immowelt.de leboncoin.fr marktplaats.nl bol.com wallapop.com
milanuncios.com subito.it willhaben.at ricardo.ch tutti.ch blocket.se finn.no dba.dk tori.fi avito.ru ozon.ru wildberries.ru
mercadolibre.com mercadolivre.com.br shopee.com lazada.com rakuten.co.jp rakuten.com walmart.com wayfair.com depop.com poshmark.com
discogs.com dawanda.com kaufland.de otto.de cdiscount.com fnac.com emag.ro hood.de real.de avocadostore.de notonthehighstreet.com
airbnb.com airbnb.de booking.com tripadvisor.com tripadvisor.de tripadvisor.co.uk yelp.com yelp.de trustpilot.com provenexpert.com
gelbeseiten.de dasoertliche.de 11880.com meinestadt.de cylex.de golocal.de werkenntdenbesten.de branchenbuch.de herold.at local.ch
search.ch yellowpages.com yell.com pagesjaunes.fr paginegialle.it paginasamarillas.es goudengids.nl firmy.cz panoramafirm.pl
lieferando.de lieferando.at ubereats.com deliveroo.co.uk just-eat.co.uk thuisbezorgd.nl wolt.com doordash.com opentable.com
opentable.de thefork.com quandoo.de jameda.de doctolib.de doctolib.fr doctolib.it treatwell.de treatwell.co.uk fresha.com planity.com
myhammer.de check24.de fiverr.com upwork.com houzz.com houzz.de malt.com malt.fr freelancermap.de amazon.com.be g.page
maps.app.goo.gl goo.gl business.site linkin.bio page.link
medium.com dev.to qiita.com note.com zhihu.com habr.com issuu.com about.me`)

// profileNames are such names under any top-level domain.
var profileNames = wordset.Of(`amazon ebay olx etsy shopee lazada mercadolibre airbnb tripadvisor yelp vinted booking pinterest`)

// isProfile says that a canonical address is a social or marketplace profile.
func isProfile(canonical string) bool {
	host := strings.TrimSuffix(address.HostOf(canonical), ".")
	domain := registrable(host)
	if domain == "" {
		return profileDomains[host]
	}
	name, _, _ := strings.Cut(domain, ".")
	if profileDomains[domain] || profileDomains[host] || profileNames[name] &&
		isShort(domain) {
		return true
	}
	if name != "google" {
		return false
	}
	parsed, err := url.Parse(canonical)
	return err == nil && (strings.HasPrefix(host, "maps.") || strings.HasPrefix(host, "plus.") ||
		strings.HasPrefix(host, "business.") ||
		strings.HasPrefix(parsed.Path, "/maps"))
}

// isShort says that a domain is under a country or .com: amazon.de, ebay.co.uk, not amazon.shop.
func isShort(domain string) bool {
	_, suffix, _ := strings.Cut(domain, ".")
	last := suffix[strings.LastIndexByte(suffix, '.')+1:]
	return len(last) == 2 || last == "com"
}
