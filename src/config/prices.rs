//! The list prices that ralph ships (`prices.yml`): data, read when a run is planned.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::UserError;
use crate::run::budget::Price;
use crate::yaml;

/// The shipped list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceList {
    /// When the prices were looked up.
    pub date: String,
    pub models: BTreeMap<String, Price>,
}

pub(crate) fn price_list() -> Result<PriceList, UserError> {
    yaml::read("prices.yml", include_str!("../../prices.yml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_list_is_dated_and_plausible() {
        let list = price_list().unwrap();
        assert!(list.date.parse::<jiff::civil::Date>().is_ok(), "{}", list.date);
        assert!(list.models.len() > 20);
        for (model, price) in &list.models {
            assert!(price.input > 0.0 && price.output > price.input, "{model}");
            assert!(price.cached.is_none_or(|cached| cached < price.input), "{model}");
        }
    }
}
