// Package serving is a webhook server for controller-runtime that bounds what a client can cost it. Every pod of a
// cluster can connect to a webhook server, and an API server shows no certificate unless it is configured to.
//
// Laws:
//   - A request holds memory in proportion to what arrived, and to no length that it declares. All requests together
//     stay below Limits.Memory, which counts what decoding will take.
//   - A request ends within Limits.Read and Limits.Answer, whatever its client does.
//   - One address holds at most half of the connections, the requests and the memory, so that one client cannot starve
//     the others.
//   - A quarter of the memory is kept for small requests, and reviews of one namespace from one address share a small
//     part: a namespace with large reviews, or with slow ones, does not starve the reviews of pods elsewhere.
//   - Half of the connections are kept for known clients: API servers, nodes, clients that Check knows and the
//     loopback. A known client is accepted whatever strangers do. For a new connection the oldest one is closed that
//     has carried no valid request.
//   - A handler runs only after the client was checked and the whole body was read.
//
// Which clients are answered is for Clients: any of them, those that show a certificate of a CA, or those whose address
// is not that of a pod. Without a check, a client that is no API server gets an answer to a review that it made up, and
// some answers have data of other namespaces in them. The page docs/security.md explains what each check closes.
//
// In use:
//
//	pods := serving.Pods(reader)
//	clients := serving.Clients{Check: pods.Check, Known: pods.Known}
//	server, err := serving.New(serving.Options{Port: 9876, TLSOpts: tlsOptions, Clients: clients})
//	if err != nil {
//		return err
//	}
//	manager.Options{WebhookServer: server}
//
// Do not use it in front of a proxy: to this server all clients of a proxy are one.
package serving
