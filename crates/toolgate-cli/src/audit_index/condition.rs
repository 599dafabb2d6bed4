//! Conditions of a query, with the values of their parameters.

use rusqlite::types::Value as SqlValue;

/// SQL text that ends in conditions, and the values of its parameters.
pub(super) struct SqlConditions {
    pub(super) sql: String,
    pub(super) values: Vec<SqlValue>,
}

impl SqlConditions {
    /// Begins with SQL text whose parameters are `?1`, `?2` and so on.
    pub(super) fn new(sql: impl Into<String>, numbers: &[i64]) -> SqlConditions {
        SqlConditions {
            sql: sql.into(),
            values: numbers.iter().map(|n| SqlValue::Integer(*n)).collect(),
        }
    }

    /// Appends SQL text in which each `#` stands for the value.
    pub(super) fn push(&mut self, sql: &str, value: SqlValue) {
        self.values.push(value);
        let parameter = format!("?{}", self.values.len());
        self.sql.push_str(&sql.replace('#', &parameter));
    }

    /// Requires that one of the columns is this name. Without a name, it requires nothing.
    pub(super) fn require_name(&mut self, columns: &[&str], name: Option<&str>) {
        let Some(name) = name else { return };
        let is = |column: &&str| format!("{column} = (SELECT id FROM name WHERE text = #)");
        let any = columns.iter().map(is).collect::<Vec<_>>().join(" OR ");
        self.push(&format!(" AND ({any})"), SqlValue::Text(name.to_owned()));
    }
}
