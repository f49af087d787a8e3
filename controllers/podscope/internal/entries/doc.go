// Package entries decides how the live webhook configurations of pods are brought in line with the scope that package
// scope plans. It reads and writes nothing: controllers/podscope observes, sends the write, and reports the notes.
//
//	pass, err := entries.Next(entries.Observation{
//		Pods: pods, Provisional: provisional, Main: main, Want: planned, Sets: sets, Now: now,
//	}, state, policy)
//	...
//	state = pass.State
//	if pass.Write != nil {
//		_, err = runtimeclient.Send(ctx, client, pass.Write)
//		...
//		state = pass.Written
//	}
//
// Laws:
//   - A pass has at most one write, which tests the resource version that was observed. Entries that are as wanted
//     cause none.
//   - Ours in an entry are the rules, the client configuration, the match conditions with our names, and the
//     requirements on namespaces that were written. What differs there is written again, also where another writer
//     changed it. A requirement that is no longer wanted is removed. What others add, their policies and their timeouts
//     stay, as do entries with other names.
//   - A missing configuration is created with its entries where there are any.
//   - The entries are repaired within a second after another writer changed them. Pauses grow, up to Policy.MostPause,
//     while that writer changes them again within half a minute. A change of what is wanted never waits for such a
//     pause.
//   - A configuration has at most 140 writes in a minute: 20 in a row come at once, and each further one within half a
//     second. Package steady bounds those of one namespace.
//   - A provisional entry stays until the planned entries have had its set for a second. It goes after some seconds
//     where the set is not stored.
//
// When not to use it: for configurations whose entries do not depend on objects of the cluster; package certificates
// keeps their CA.
package entries
