package serving

import (
	"cmp"
	"net/netip"
	"slices"
)

const (
	// strange is the part of all connections that strangers may have together, few that of one of them, and fewest what
	// one may have at least. A stranger that was looked up and answered may have a part of some.
	strange, few, fewest, some = 2, 16, 4, 4
	// network is the length of the prefix by which strangers are counted in IPv6: one pod can have all addresses of it.
	network = 64
)

// connections decide which connections of a listener stay open. It is a value: it reads no clock, and closes nothing
// itself.
//
// Half of the connections are kept for known clients. A stranger has few. A connection is silent until it has carried a
// valid request, and then idle between requests. Where there is no room, the new connection takes the place of the
// oldest silent one of the client that has most of these, or of the oldest idle one. So a client that only opens
// connections closes its own, one that is known is accepted whatever strangers do, and no request is cut off.
type connections struct {
	most, all, strangers int
	last                 uint64
	groups               map[group]*opened
}

// group is what connections are counted by: the address of a known client, the address or network of a stranger.
type group struct {
	of    netip.Prefix
	known bool
}

// opened are the connections of a group, the silent and the idle ones in the order in which they were opened.
type opened struct {
	count        int
	silent, idle []*connection
}

// connection is one that is open.
type connection struct {
	address netip.Addr
	group   group
	number  uint64
	// spoken is whether it has carried a valid request, and active whether it carries one now.
	spoken, active bool
	closed         bool
}

func newConnections(most int) *connections {
	return &connections{most: most, groups: map[group]*opened{}}
}

// groupOf returns by what the connections of a client are counted.
func groupOf(address netip.Addr, known bool) group {
	bits := address.BitLen()
	if !known && address.Is6() {
		bits = network
	}
	of, err := address.Prefix(bits)
	if err != nil {
		return group{known: known} // it has no address
	}
	return group{of, known}
}

// limit of one client.
func (c *connections) limit(is standing) int {
	part := few
	switch is {
	case known:
		return max(1, c.most/2)
	case answered:
		part = some
	}
	return min(max(fewest, c.most/part), max(1, c.most/strange))
}

// open decides about a new connection. It is nil where there is no room. The other connection, if any, must be closed
// for it.
func (c *connections) open(address netip.Addr, is standing) (accepted, replaced *connection) {
	of := groupOf(address, is == known)
	own := c.groups[of]
	switch {
	case own != nil && own.count >= c.limit(is):
		replaced = own.oldest()
	case is != known && c.strangers >= c.most/strange:
		replaced = c.victim(false)
	case c.all >= c.most:
		if replaced = c.victim(false); replaced == nil && is == known {
			replaced = c.victim(true)
		}
	default:
		return c.add(address, of), nil
	}
	if replaced == nil {
		return nil, nil
	}
	c.end(replaced)
	return c.add(address, of), replaced
}

func (c *connections) add(address netip.Addr, of group) *connection {
	c.last++
	one := &connection{address: address, number: c.last}
	c.join(one, of)
	return one
}

// join counts a connection in a group.
func (c *connections) join(one *connection, of group) {
	own := c.groups[of]
	if own == nil {
		own = &opened{}
		c.groups[of] = own
	}
	one.group = of
	own.count++
	c.all++
	if !of.known {
		c.strangers++
	}
	if list := own.listOf(one); list != nil {
		at, _ := slices.BinarySearchFunc(*list, one.number, func(o *connection, n uint64) int {
			return cmp.Compare(o.number, n)
		})
		*list = slices.Insert(*list, at, one)
	}
}

// leave is the opposite.
func (c *connections) leave(one *connection) {
	own := c.groups[one.group]
	own.count--
	c.all--
	if !one.group.known {
		c.strangers--
	}
	if list := own.listOf(one); list != nil {
		if at := slices.Index(*list, one); at >= 0 {
			*list = slices.Delete(*list, at, at+1)
		}
	}
	if own.count == 0 {
		delete(c.groups, one.group)
	}
}

// listOf returns where a connection is listed that may be closed; nil while it carries a request.
func (o *opened) listOf(one *connection) *[]*connection {
	switch {
	case one.active:
		return nil
	case one.spoken:
		return &o.idle
	}
	return &o.silent
}

// end forgets a connection that is closed; again it has no effect.
func (c *connections) end(one *connection) {
	if !one.closed {
		one.closed = true
		c.leave(one)
	}
}

// spoke records that a connection has carried a valid request, and whether its client is known now. One that was known
// stays so.
func (c *connections) spoke(one *connection, isKnown bool) {
	isKnown = isKnown || one.group.known
	if one.closed || one.spoken && one.group.known == isKnown {
		return
	}
	c.leave(one)
	one.spoken = true
	c.join(one, groupOf(one.address, isKnown))
}

// carries records whether a connection carries a request now.
func (c *connections) carries(one *connection, active bool) {
	if one.closed || one.active == active {
		return
	}
	of := one.group
	c.leave(one)
	one.active = active
	c.join(one, of)
}

// victim returns the oldest silent connection of the group that has most of them, of strangers or of known clients.
// Where none is silent, idle ones are looked at.
func (c *connections) victim(known bool) *connection {
	for _, list := range []func(*opened) []*connection{
		func(o *opened) []*connection { return o.silent },
		func(o *opened) []*connection { return o.idle },
	} {
		var chosen *connection
		most := 0
		for of, own := range c.groups {
			all := list(own)
			if of.known != known || len(all) == 0 {
				continue
			}
			if n := len(all); n > most || n == most && all[0].number < chosen.number {
				most, chosen = n, all[0]
			}
		}
		if chosen != nil {
			return chosen
		}
	}
	return nil
}

// oldest returns the oldest silent connection, or the oldest idle one.
func (o *opened) oldest() *connection {
	for _, list := range [][]*connection{o.silent, o.idle} {
		if len(list) > 0 {
			return list[0]
		}
	}
	return nil
}
