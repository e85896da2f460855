// Package routers shows limits in front of chi, gin and echo: rules for the whole router, and a limit of its own on one
// route.
//
// Rules read paths as net/http's router does. These routers read some of them otherwise, and a path that a route serves
// and its rule does not see is not limited:
//
//   - They serve /files/../users/7 as it comes, by the route of /files/, where a rule sees /users/7. [Clean] goes before
//     them and redirects such paths, as net/http does.
//   - gin decodes a path before it parts it, so that /users%2F7 is /users/7; UseEscapedPath parts it first.
//   - The route /users/:id of echo also serves /users/7/ and /users/7/x; that of chi, /users/%2F. So match a subtree in
//     the rule: /users/ rather than /users/{id}.
//
// A limit that is put on a route, like that on the logins here, counts whatever reaches the route.
package routers
