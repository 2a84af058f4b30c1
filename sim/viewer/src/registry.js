// The views by name. A view module calls register() when it is imported; main.js imports them all.
//
//   id         word in the hash (#view=ID) and in the DOM
//   title      on the tab
//   place      "main" (a tab of the middle), "left" or "right" (columns; tabs where it is narrow)
//   order      tabs of a place stand in this order
//   component  a preact component without props; it reads signals of store.js
//   isShown    () => whether this page has what the view shows; left out: always
//   foot       true: in a column, it stands under the tabs instead of being one
const views = [];

/** Make a view known; an id that is taken is a mistake in the source. */
export function register(view) {
  if (views.some((each) => each.id === view.id)) throw new Error(`two views are called ${view.id}`);
  views.push({ place: "main", order: 100, isShown: () => true, ...view });
  views.sort((one, other) => one.order - other.order);
}

/** The views that this page shows, of a place, or of all. */
export function viewsOf(place) {
  return views.filter((each) => (!place || each.place === place) && each.isShown());
}

/** The view of an id that this page shows, or undefined. */
export function viewOf(id) {
  return views.find((each) => each.id === id && each.isShown());
}
