package state

// OwnedSince is the first cluster version that keeps counts of what customers own.
const OwnedSince = 2

// Owned counts what a customer has, without what the service made.
type Owned struct {
	Groups     int `cbor:"1,keyasint,omitempty"`
	Scrapers   int `cbor:"2,keyasint,omitempty"`
	Shares     int `cbor:"3,keyasint,omitempty"` // of all its groups
	Categories int `cbor:"4,keyasint,omitempty"` // in all its groups
}

// plus returns the counts with others added.
func (o Owned) plus(by Owned) Owned {
	return Owned{Groups: o.Groups + by.Groups, Scrapers: o.Scrapers + by.Scrapers,
		Shares: o.Shares + by.Shares, Categories: o.Categories + by.Categories}
}

// less returns the counts with others subtracted.
func (o Owned) less(by Owned) Owned {
	return Owned{Groups: o.Groups - by.Groups, Scrapers: o.Scrapers - by.Scrapers,
		Shares: o.Shares - by.Shares, Categories: o.Categories - by.Categories}
}

// owned returns what a group adds to its customer's counts; g may be nil.
func (g *Group) owned() Owned {
	if g == nil || !g.Of.IsZero() {
		return Owned{}
	}
	return Owned{Groups: 1, Scrapers: g.Scrapers}
}

// Owned returns a customer's counts.
func (v *View) Owned(customer string) Owned {
	if known := v.Customer(customer); known != nil && known.Owned != nil {
		return *known.Owned
	}
	return v.countOwned(customer)
}

// countOwned counts what a customer has.
func (v *View) countOwned(customer string) (count Owned) {
	groupsTable.each(v, false, func(g *Group) bool {
		count = count.plus(g.owned())
		return true
	}, "customer_prefix", customer)
	sharesTable.each(v, false, func(*Share) bool { count.Shares++; return true },
		"owner_prefix", customer)
	categoriesTable.each(v, false, func(*Category) bool { count.Categories++; return true },
		"customer_prefix", customer)
	return count
}

// countIn adds to a customer's counts what the command has just changed. A customer without counts
// has nothing, or had it before OwnedSince. Its first change counts all of it.
func (t *Tx) countIn(customer string, by Owned) {
	known := t.Customer(customer)
	if known == nil || by == (Owned{}) || t.ClusterVersion() < OwnedSince {
		return
	}
	next := *known
	var count Owned
	if known.Owned != nil {
		count = known.Owned.plus(by)
	} else {
		count = t.countOwned(customer)
	}
	if next.Owned = &count; count == (Owned{}) {
		next.Owned = nil
	}
	t.PutCustomer(&next)
}

// OwnGroups counts the customer's groups, without those that the service made.
func (v *View) OwnGroups(customer string) int { return v.Owned(customer).Groups }

// OwnScrapers counts a customer's scrapers, without those that the service made.
func (v *View) OwnScrapers(customer string) int { return v.Owned(customer).Scrapers }

// SharesOf counts the shares of all groups of a customer.
func (v *View) SharesOf(customer string) int { return v.Owned(customer).Shares }

// CategoriesOf counts a customer's categories in all its groups.
func (v *View) CategoriesOf(customer string) int { return v.Owned(customer).Categories }
