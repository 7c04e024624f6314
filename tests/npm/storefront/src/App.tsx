import { total } from "./cart";

export function App() { return <p>total: {total([{ name: "pen", price: 2, quantity: 3 }])}</p>; }
