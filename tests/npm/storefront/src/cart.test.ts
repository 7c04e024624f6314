import { describe, expect, it } from "vitest";
import { cheapest, total } from "./cart";
const lines = [{ name: "pen", price: 2, quantity: 3 }, { name: "ink", price: 1, quantity: 4 }];
describe("cart", () => {
  it("adds up", () => expect(total(lines)).toBe(10));
  it("finds the cheapest", () => expect(cheapest(lines)?.name).toBe("ink"));
  it("has no cheapest when empty", () => expect(cheapest([])).toBeUndefined());
});
