package synthetic

import (
	"math/rand/v2"
	"strings"
)

// The languages' words are mostly function words. Spam and ham draw from the same
// subject words.
var (
	english = strings.Fields(`the of and to in is you that it he was for on are as with his they at be this have
		from or one had by word but not what all were we when your can said there use an each which she do how their
		if will up other about out many then them these so some her would make like him into time has look two more
		write go see number no way could people my than first been call who its now find long down day did get come
		made may part over new take only little work know place year live me back give most very after thing our just
		name good think say help through much before line right too mean any same tell follow came want show also
		around three small set put end does another well large must big even such because turn here why ask went need
		different us move try again change off play point page should answer found still learn between never last let
		thought keep start might saw far run while close night open seem next begin got always those both often until
		later really maybe sure`)
	german = strings.Fields(`der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch
		es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur
		oder aber vor zur bis mehr durch man sein wurde wenn ihr unser können schon heute gestern morgen Treffen
		Bericht Rechnung Angebot Zeit Frage Antwort bitte danke Grüße Woche Kunde Konto Projekt kostenlos Lieferung
		Bestellung`)
	french = strings.Fields(`le de un être et à il avoir ne je son que se qui ce dans en du elle au pour pas sur
		faire plus dire me on mon lui nous comme mais pouvoir avec tout y aller voir bien où sans tu ou leur homme si
		deux même notre merci bonjour réunion facture commande livraison semaine demain compte offre gratuit projet
		client réponse question rapport temps`)
	spanish = strings.Fields(`de la que el en y a los se del las un por con no una su para es al lo como más o pero
		sus le ha me si sin sobre este ya entre cuando todo esta ser son dos también fue había era muy años hasta
		desde está mi porque qué sólo han yo hay gracias hola reunión factura pedido entrega semana mañana cuenta
		oferta gratis proyecto cliente respuesta pregunta informe`)
	japanese = strings.Fields(`会議 資料 確認 お願い します ありがとう ござい ます 明日 今日 予定 報告 注文 請求書 商品 無料 特別 ご案内 お客様 登録 こちら から まで です
		について 送付 添付 返信 質問 回答 連絡 電話 住所 価格 割引 限定 会員 情報 更新 手続き`)

	office = strings.Fields(`meeting report budget draft review schedule agenda minutes project deadline contract
		proposal invoice estimate plan team client slides version release feedback comments attached document table
		figure summary quarter office training travel hotel flight conference room call phone question decision
		approve update status issue customer support server backup deploy test build design model data paper chapter
		lecture students course exam library grant proposal results analysis`)
	personal = strings.Fields(`dinner weekend kids birthday party photos holiday garden house car train movie music
		concert book school mother father sister brother friend dog cat weather rain snow beach coffee lunch recipe
		football match game tickets bike doctor neighbour wedding baby grandma visit trip mountains lake cake present
		thanks love hope miss cheers`)
	commerce = strings.Fields(`offer price free shipping order discount save sale deal today limited member account
		click here unsubscribe subscription exclusive new collection products customers shop store online delivery
		gift card bonus points reward percent best quality guarantee special selected brand season week only available
		stock buy coupon code checkout credit payment money cash million dollars investment market business
		opportunity income earn winner prize claim`)
	money = strings.Fields(`account bank transfer payment card security verify login password statement balance
		transaction update confirm suspended access customer service notice invoice amount due reference number
		receipt`)
	medical = strings.Fields(`health doctor prescription pharmacy pills tablets weight loss diet natural formula
		clinical dose treatment energy pain sleep skin results body medication patients`)
	computer = strings.Fields(`kernel patch driver module compile package repository branch merge commit bug
		segfault thread memory cache disk network socket packet protocol client library function pointer buffer
		release mailing patchset config install upgrade debian linux python perl gcc test regression warning trace log
		error`)
	news = strings.Fields(`government election minister market shares company report percent economy climate
		energy court police city country president science study university research space health sports team season
		player coach film museum festival`)
	letters = strings.Fields(`dear sir madam fund deceased relative beneficiary attorney barrister confidential
		transaction million dollars percentage trust urgent reply foreign partner deposit inheritance late husband
		honest god bless contact bank director`)
	dating = strings.Fields(`lonely single girl profile photo chat tonight meet waiting hot webcam private
		message sweet looking relationship serious woman man lovely smile write`)

	firstNames = strings.Fields(`Anna Ben Carla David Elena Farid Grace Hugo Ines Jack Karin Liam Mona Noah Olga
		Paul Rosa Sam Tara Umar Vera Wim Yuki Zoe Marta Jonas Aisha Pedro Lucy Omar`)
	lastNames = strings.Fields(`Adams Bauer Costa Dubois Evans Fischer Garcia Hansen Ito Jansen Keller Lopez
		Moreau Novak Olsen Patel Quinn Rossi Smith Tanaka Ueda Vogel Weber Young Zhang Brown Kumar Silva Miller
		Svensson`)

	syllables = strings.Fields(`ba be bi bo ca ce co da de di do fa fe fi fo ga go ha he hi ja jo ka ke ki la le li
		lo ma me mi mo na ne ni no pa pe pi po ra re ri ro sa se si so ta te ti to va ve vi vo xa xi za zo tron lux
		max vit gen tec mart plex`)
)

func pick(r *rand.Rand, words []string) string { return words[r.IntN(len(words))] }

// zipf picks a word early in the list more often than a late one.
func zipf(r *rand.Rand, words []string) string {
	u := r.Float64()
	return words[int(u*u*float64(len(words)))]
}

// coined makes up a word of two to four syllables.
func coined(r *rand.Rand) string {
	s := ""
	for range 2 + r.IntN(3) {
		s += pick(r, syllables)
	}
	return s
}

func coinedWords(r *rand.Rand, n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = coined(r)
	}
	return words
}

// sample draws n words of a list, with replacement.
func sample(r *rand.Rand, words []string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = pick(r, words)
	}
	return out
}

// A style is the vocabulary of a text: a fraction share of its words is drawn from
// topic, the rest from language.
type style struct {
	language []string
	topic    []string
	share    float64
}

func (s *style) word(r *rand.Rand) string {
	if r.Float64() < s.share {
		return pick(r, s.topic)
	}
	return zipf(r, s.language)
}

func (s *style) sentence(dst []byte, r *rand.Rand, n int) []byte {
	n = max(2, n/2+r.IntN(n+1))
	for i := range n {
		w := s.word(r)
		switch {
		case i == 0:
			dst = appendTitle(dst, w)
		default:
			dst = append(dst, w...)
		}
		if i == n-1 {
			dst = append(dst, ". "...)
		} else if r.IntN(11) == 0 {
			dst = append(dst, ", "...)
		} else {
			dst = append(dst, ' ')
		}
	}
	return dst
}

func (s *style) paragraph(dst []byte, r *rand.Rand, n int) []byte {
	for range n {
		dst = s.sentence(dst, r, 11)
	}
	return append(dst[:len(dst)-1], "\n\n"...)
}

// phrase returns n words, the first in upper case.
func (s *style) phrase(r *rand.Rand, n int) string {
	var b []byte
	for i := range n {
		w := s.word(r)
		if i == 0 {
			b = appendTitle(b, w)
			continue
		}
		b = append(append(b, ' '), w...)
	}
	return string(b)
}

func appendTitle(dst []byte, w string) []byte {
	if w != "" && w[0] >= 'a' && w[0] <= 'z' {
		return append(append(dst, w[0]-'a'+'A'), w[1:]...)
	}
	return append(dst, w...)
}
