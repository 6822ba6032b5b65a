//! The list prices that ralph ships (`prices.yml`): data, read when a cost is first estimated.

use std::sync::LazyLock;

use crate::run::budget::PriceList;
use crate::yaml;

/// The shipped list; a test reads it.
pub(crate) static PRICE_LIST: LazyLock<PriceList> = LazyLock::new(|| {
    yaml::read("prices.yml", include_str!("../../prices.yml")).unwrap_or_else(|error| panic!("prices.yml: {error}"))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_list_is_dated_and_plausible() {
        let list = &*PRICE_LIST;
        assert!(list.date.parse::<jiff::civil::Date>().is_ok(), "{}", list.date);
        assert!(list.models.len() > 20);
        for (model, price) in &list.models {
            assert!(price.input > 0.0 && price.output > price.input, "{model}");
            assert!(price.cached.is_none_or(|cached| cached < price.input), "{model}");
        }
    }
}
